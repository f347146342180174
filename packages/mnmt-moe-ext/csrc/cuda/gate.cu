// The top-k gate's operators on a GPU.
#include "gate.cuh"

#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "../route_arguments.h"
#include "../row_checks.h"
#include "gate_backward.cuh"
#include "stream.h"

namespace mnmt_moe {
namespace {

using RoutedWithLayout = decltype(std::tuple_cat(Routed{}, std::tuple<Tensor, Tensor>{}));

GateShape gate_shape(const RouteShape& shape, const Tensor& logits) {
    MNMT_CHECK(logits.scalar_type() == ScalarType::Float, "`logits` on a GPU must be float32 or bfloat16");
    MNMT_CHECK(shape.num_experts <= kMaxExperts, "`logits` on a GPU must have at most ", kMaxExperts,
               " experts, but has ", shape.num_experts);
    return {shape.groups, shape.tokens, static_cast<int>(shape.num_experts), static_cast<int>(shape.top_k)};
}

void run(const RouteCall& call, const GateLayout& layout) {
    const GateShape shape = gate_shape(call.shape, call.logits);
    const OnDeviceOf device(call.logits);
    const Tensor workspace =
        new_empty(call.logits, {static_cast<int64_t>(workspace_bytes(shape))}, ScalarType::Byte);
    launch_gate({read<float>(call.logits),
                 read<bool>(call.padding_mask),
                 read<float>(call.bias),
                 read<int32_t>(call.choices),
                 {read<int64_t>(call.seed_and_step), read<int64_t>(call.token_ids), call.layer}},
                shape, {call.capacity, call.threshold, call.renormalise},
                {write<float>(call.weights), write<float>(call.gate_means), write<float>(call.log_sums),
                 write<int32_t>(call.experts), write<int32_t>(call.slots), write<int32_t>(call.load),
                 write<int32_t>(call.used_choices), write<int32_t>(call.real_tokens)},
                layout, workspace.mutable_data_ptr(), device.stream());
}

Routed top_k_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                  const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                  const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                  double threshold, int64_t renormalise) {
    const RouteCall call(logits, padding_mask, bias, choices, seed_and_step, token_ids, top_k, capacity,
                         layer, threshold, renormalise);
    run(call, GateLayout{});
    return call.results();
}

RoutedWithLayout route(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                       const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                       double threshold, int64_t renormalise, int64_t bin_size) {
    const RouteCall call(logits, padding_mask, bias, choices, seed_and_step, token_ids, top_k, capacity,
                         layer, threshold, renormalise);
    const bool ragged = bin_size == 0;
    const int64_t num_experts = logits.size(2), bins = logits.size(0) * num_experts;
    MNMT_CHECK(ragged || bin_size >= capacity, "`bin_size` must be at least `capacity`, or 0");
    ragged ? checked_num_rows(logits.size(0) * top_k, logits.size(1)) : checked_num_rows(bins, bin_size);
    const Tensor rows = new_empty(call.slots, call.slots.sizes());
    const Tensor filled_or_ends = new_empty(rows, {ragged ? num_experts : bins});
    const Tensor bases = new_empty(rows, {ragged ? bins : 0});
    auto* second = write<int32_t>(filled_or_ends);
    run(call, {write<int32_t>(rows), ragged ? nullptr : second, ragged ? second : nullptr,
               write<int32_t>(bases), static_cast<int32_t>(bin_size)});
    return std::tuple_cat(call.results(), std::tuple(rows, filled_or_ends));
}

Tensor top_k_gate_backward(const std::optional<Tensor>& grad_weights,
                           const std::optional<Tensor>& grad_gate_means,
                           const std::optional<Tensor>& grad_log_sums, const Tensor& logits,
                           const Tensor& choices, const Tensor& slots, const Tensor& log_sums,
                           const Tensor& real_tokens, int64_t renormalise) {
    const RouteBackwardCall call(grad_weights, grad_gate_means, grad_log_sums, logits, choices, slots,
                                 log_sums, real_tokens, renormalise);
    const GateShape shape = gate_shape(call.shape, call.logits);
    const OnDeviceOf device(call.logits);
    launch_gate_backward(
        {read<float>(call.grad_weights), read<float>(call.grad_gate_means), read<float>(call.grad_log_sums),
         read<float>(call.logits), read<int32_t>(call.choices), read<int32_t>(call.slots),
         read<float>(call.log_sums), read<int32_t>(call.real_tokens), call.renormalise, shape,
         write<float>(call.grad_logits)},
        device.stream());
    return call.grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("top_k_gate", TORCH_BOX(&mnmt_moe::top_k_gate));
    library.impl("route", TORCH_BOX(&mnmt_moe::route));
    library.impl("top_k_gate_backward", TORCH_BOX(&mnmt_moe::top_k_gate_backward));
}
