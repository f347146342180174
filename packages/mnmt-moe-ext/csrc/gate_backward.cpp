// The gradient of the top-k gate on the CPU: blocks of tokens in parallel.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <optional>

#include "gate_blocks.h"
#include "gate_types.h"
#include "route_arguments.h"

namespace mnmt_moe {
namespace {

// The gradient with respect to the gates of each group's real tokens, by their mean alone.
template <typename Gate>
PaddedRows<Gate> gate_gradients(const RouteBackwardCall& call) {
    const int64_t num_experts = call.shape.num_experts;
    PaddedRows<Gate> grads(call.shape.groups, num_experts);
    const auto* grad_means = read<Gate>(call.grad_gate_means);
    for (int64_t group = 0; grad_means != nullptr && group < call.shape.groups; ++group) {
        const Gate real = static_cast<Gate>(std::max(1, read<int32_t>(call.real_tokens)[group]));
        for (int64_t expert = 0; expert < num_experts; ++expert) {
            grads.row(group)[expert] = grad_means[group * num_experts + expert] / real;
        }
    }
    return grads;
}

template <typename Logit>
void run(const RouteBackwardCall& call) {
    using Gate = GateOf<Logit>;
    const auto [groups, tokens, num_experts, top_k] = call.shape;
    const Blocks blocks{groups, tokens, num_experts};
    GateOptions options{};
    options.num_tokens = groups * tokens;
    options.num_experts = num_experts;
    options.top_k = static_cast<int>(top_k);
    options.renormalise = call.renormalise;
    const GradientArrays<Logit> arrays{read<Logit>(call.logits),      read<int32_t>(call.choices),
                                       read<int32_t>(call.slots),     read<Gate>(call.log_sums),
                                       read<Gate>(call.grad_weights), read<Gate>(call.grad_log_sums),
                                       write<Logit>(call.grad_logits)};
    const PaddedRows<Gate> grad_gates = gate_gradients<Gate>(call);
    const auto kernels = chosen_kernels<Logit>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        PaddedRows<Gate> scratch(1, blocks.num_experts);
        for (int64_t block = begin; block < end; ++block) {
            kernels.backward(arrays, options, blocks.range(block), grad_gates.row(blocks.group_of(block)),
                             scratch.row(0));
        }
    });
}

Tensor top_k_gate_backward(const std::optional<Tensor>& grad_weights,
                           const std::optional<Tensor>& grad_gate_means,
                           const std::optional<Tensor>& grad_log_sums, const Tensor& logits,
                           const Tensor& choices, const Tensor& slots, const Tensor& log_sums,
                           const Tensor& real_tokens, int64_t renormalise) {
    const RouteBackwardCall call(grad_weights, grad_gate_means, grad_log_sums, logits, choices, slots,
                                 log_sums, real_tokens, renormalise);
    check_choices(call.choices, nullptr, call.shape.num_experts);
    dispatch_logits(logits, [&](auto logit) { run<decltype(logit)>(call); });
    return call.grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("top_k_gate_backward", TORCH_BOX(&mnmt_moe::top_k_gate_backward));
}
