// The gradient of `route` on the CPU: blocks of tokens in parallel.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <optional>

#include "../route_arguments.h"
#include "blocks.h"
#include "gate_types.h"

namespace mnmt_moe {
namespace {

// The gradient with respect to the gates of each group's real tokens, by their mean alone.
template <typename T>
PaddedRows<T> gate_gradients(const RouteBackwardCall& call) {
    const int64_t num_experts = call.shape.num_experts;
    PaddedRows<T> grads(call.shape.groups, num_experts);
    const auto* grad_means = read<T>(call.grad_gate_means);
    for (int64_t group = 0; grad_means != nullptr && group < call.shape.groups; ++group) {
        const T real = static_cast<T>(std::max(1, read<int32_t>(call.real_tokens)[group]));
        for (int64_t expert = 0; expert < num_experts; ++expert) {
            grads.row(group)[expert] = grad_means[group * num_experts + expert] / real;
        }
    }
    return grads;
}

template <typename T>
void run_for(const RouteBackwardCall& call) {
    const auto [groups, tokens, num_experts, top_k] = call.shape;
    const Blocks blocks{groups, tokens, num_experts};
    GateOptions options{};
    options.num_tokens = groups * tokens;
    options.num_experts = num_experts;
    options.top_k = static_cast<int>(top_k);
    options.renormalise = call.renormalise;
    const GradientArrays<T> arrays{read<T>(call.logits),       read<int32_t>(call.choices),
                                   read<int32_t>(call.slots),  read<T>(call.log_sums),
                                   read<T>(call.grad_weights), read<T>(call.grad_log_sums),
                                   write<T>(call.grad_logits)};
    const PaddedRows<T> grad_gates = gate_gradients<T>(call);
    const auto kernels = chosen_kernels<T>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        PaddedRows<T> scratch(1, blocks.num_experts);
        for (int64_t block = begin; block < end; ++block) {
            kernels.backward(arrays, options, blocks.range(block), grad_gates.row(blocks.group_of(block)),
                             scratch.row(0));
        }
    });
}

void run(const RouteBackwardCall& call) {
    check_choices(call.choices, nullptr, call.shape.num_experts);
    dispatch_logits(call.logits, [&](auto logit) { run_for<decltype(logit)>(call); });
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("route_backward", TORCH_BOX(&mnmt_moe::route_backward<mnmt_moe::run>));
}
