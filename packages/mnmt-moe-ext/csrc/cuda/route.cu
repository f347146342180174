// `route`, its gradient, and `arrange` on a GPU.
#include "route.cuh"

#include <torch/csrc/stable/library.h>

#include "../arrange_call.h"
#include "../route_arguments.h"
#include "arrange.cuh"
#include "route_backward.cuh"
#include "stream.h"

namespace mnmt_moe {
namespace {

GateShape gate_shape(const RouteShape& shape, const Tensor& logits) {
    MNMT_CHECK(logits.scalar_type() == ScalarType::Float, "`logits` on a GPU must be float32 or bfloat16");
    MNMT_CHECK(shape.num_experts <= kMaxExperts, "`logits` on a GPU must have at most ", kMaxExperts,
               " experts, but has ", shape.num_experts);
    return {shape.groups, shape.tokens, static_cast<int>(shape.num_experts), static_cast<int>(shape.top_k)};
}

void run(const RouteCall& call) {
    const GateShape shape = gate_shape(call.shape, call.logits);
    const OnDeviceOf device(call.logits);
    const Tensor workspace =
        new_empty(call.logits, {static_cast<int64_t>(GateWorkspace::bytes(shape))}, ScalarType::Byte);
    const Tensor bases = new_empty(call.load, {call.is_ragged() ? call.shape.bins() : 0});
    const Tensor& filled = call.is_ragged() ? bases : call.filled_or_ends;
    const GateLayout layout{write<int32_t>(call.rows), write<int32_t>(filled),
                            call.is_ragged() ? write<int32_t>(call.filled_or_ends) : nullptr,
                            static_cast<int32_t>(call.bin_size)};
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

void run_backward(const RouteBackwardCall& call) {
    const GateShape shape = gate_shape(call.shape, call.logits);
    const OnDeviceOf device(call.logits);
    launch_gate_backward(
        {read<float>(call.grad_weights), read<float>(call.grad_gate_means), read<float>(call.grad_log_sums),
         read<float>(call.logits), read<int32_t>(call.choices), read<int32_t>(call.slots),
         read<float>(call.log_sums), read<int32_t>(call.real_tokens), call.renormalise, shape,
         write<float>(call.grad_logits)},
        device.stream());
}

void run_arrange(const ArrangeCall& call) {
    const GateShape shape(1, call.length, static_cast<int>(call.num_bins), 1);
    const OnDeviceOf device(call.bins);
    const Tensor claims = new_empty(call.bins, {claim_counts(shape)});
    const Tensor bases = new_empty(call.bins, {call.num_bins});
    launch_arrange({read<int32_t>(call.bins), shape, write<int32_t>(claims), write<int32_t>(bases),
                    write<int32_t>(call.ends), write<int32_t>(call.rows)},
                   device.stream());
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("route", TORCH_BOX(&mnmt_moe::route<mnmt_moe::run>));
    library.impl("route_backward", TORCH_BOX(&mnmt_moe::route_backward<mnmt_moe::run_backward>));
    library.impl("arrange", TORCH_BOX(&mnmt_moe::arrange<mnmt_moe::run_arrange>));
}
