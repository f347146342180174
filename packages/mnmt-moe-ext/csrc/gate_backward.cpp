// The gradient of the top-k gate on the CPU: blocks of tokens in parallel.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <optional>

#include "gate_blocks.h"
#include "gate_types.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::new_zeros;

// The gradient with respect to the gates of each group's real tokens, by their mean alone.
template <typename Gate>
PaddedRows<Gate> gate_gradients(const Gate* grad_means, const int32_t* real_tokens, const Blocks& blocks) {
    PaddedRows<Gate> grads(blocks.groups, blocks.num_experts);
    for (int64_t group = 0; group < blocks.groups; ++group) {
        const Gate real = static_cast<Gate>(std::max(1, real_tokens[group]));
        for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
            grads.row(group)[expert] = grad_means[group * blocks.num_experts + expert] / real;
        }
    }
    return grads;
}

template <typename Logit>
void backward(const GradientArrays<Logit>& arrays, const GateOptions& options, const Blocks& blocks,
              const PaddedRows<GateOf<Logit>>& grad_gates) {
    using Gate = GateOf<Logit>;
    const auto kernels = chosen_kernels<Logit>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        PaddedRows<Gate> scratch(1, blocks.num_experts);
        for (int64_t block = begin; block < end; ++block) {
            kernels.backward(arrays, options, blocks.range(block), grad_gates.row(blocks.group_of(block)),
                             scratch.row(0));
        }
    });
}

// The arguments but for `renormalise`, contiguous.
struct GradientArguments {
    Tensor grad_weights, grad_gate_means, grad_log_sums, logits, choices, slots, log_sums, real_tokens;

    int64_t top_k() const { return choices.size(2); }

    void check() const {
        MNMT_CHECK(choices.dim() == 3, "`choices` must be (groups, tokens, top_k)");
        check_top_k(logits, top_k());
        check_per_choice(grad_weights, gate_type(logits), logits, top_k(), "grad_weights");
        check_per_choice(choices, ScalarType::Int, logits, top_k(), "choices");
        check_per_choice(slots, ScalarType::Int, logits, top_k(), "slots");
        check_per_token(grad_log_sums, gate_type(logits), logits, "grad_log_sums");
        check_per_token(log_sums, gate_type(logits), logits, "log_sums");
        check_per_group(real_tokens, ScalarType::Int, logits, "real_tokens");
        check_grad_gate_means(grad_gate_means, gate_type(logits), logits);
        check_choices(choices, logits.size(2));
    }

    template <typename Logit>
    GradientArrays<Logit> arrays(Tensor& grad_logits) const {
        using Gate = GateOf<Logit>;
        return {static_cast<const Logit*>(logits.const_data_ptr()),
                choices.const_data_ptr<int32_t>(),
                slots.const_data_ptr<int32_t>(),
                log_sums.const_data_ptr<Gate>(),
                grad_weights.const_data_ptr<Gate>(),
                grad_log_sums.const_data_ptr<Gate>(),
                static_cast<Logit*>(grad_logits.mutable_data_ptr())};
    }
};

Tensor contiguous_or_zeros(const std::optional<Tensor>& grad, const Tensor& logits,
                           torch::headeronly::IntHeaderOnlyArrayRef shape) {
    return grad.has_value() ? contiguous(*grad) : new_zeros(logits, shape, gate_type(logits));
}

Tensor top_k_gate_backward(const std::optional<Tensor>& grad_weights,
                           const std::optional<Tensor>& grad_gate_means,
                           const std::optional<Tensor>& grad_log_sums, const Tensor& logits,
                           const Tensor& choices, const Tensor& slots, const Tensor& log_sums,
                           const Tensor& real_tokens, int64_t renormalise) {
    check_logits(logits);
    const GradientArguments arguments{
        contiguous_or_zeros(grad_weights, logits, choices.sizes()),
        contiguous_or_zeros(grad_gate_means, logits, {logits.size(0), logits.size(2)}),
        contiguous_or_zeros(grad_log_sums, logits, log_sums.sizes()),
        contiguous(logits),
        contiguous(choices),
        contiguous(slots),
        contiguous(log_sums),
        contiguous(real_tokens)};
    arguments.check();
    check_renormalise(renormalise);
    const Tensor& rows = arguments.logits;
    const Blocks blocks{rows.size(0), rows.size(1), rows.size(2)};
    GateOptions options{};
    options.num_tokens = blocks.groups * blocks.tokens;
    options.num_experts = blocks.num_experts;
    options.top_k = static_cast<int>(arguments.top_k());
    options.renormalise = static_cast<Renormalise>(renormalise);
    Tensor grad_logits = new_empty(rows, rows.sizes());
    dispatch_logits(rows, [&](auto logit) {
        using Logit = decltype(logit);
        using Gate = GateOf<Logit>;
        const PaddedRows<Gate> grad_gates =
            gate_gradients(arguments.grad_gate_means.const_data_ptr<Gate>(),
                           arguments.real_tokens.const_data_ptr<int32_t>(), blocks);
        backward(arguments.arrays<Logit>(grad_logits), options, blocks, grad_gates);
    });
    return grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("top_k_gate_backward", TORCH_BOX(&mnmt_moe::top_k_gate_backward));
}
