// The gradient of the top-2 gate on the CPU: blocks of tokens in parallel.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gate_blocks.h"
#include "gate_types.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

// f_e / n of each expert in each group of n real tokens, where f_e is the share whose first choice it is:
// (groups, padded_row(num_experts)). And how many groups hold a real token.
template <typename Gate>
std::pair<std::vector<Gate>, int64_t> first_choice_loads(const int32_t* choices, const Blocks& blocks) {
    const int64_t padded = padded_row<Gate>(blocks.num_experts);
    std::vector<Gate> loads(blocks.groups * padded);
    std::vector<int64_t> counts(blocks.num_experts);
    int64_t occupied_groups = 0;
    for (int64_t group = 0; group < blocks.groups; ++group) {
        std::fill(counts.begin(), counts.end(), 0);
        double real_tokens = 0;
        for (int64_t token = group * blocks.tokens; token < (group + 1) * blocks.tokens; ++token) {
            if (choices[2 * token] != kNone) {
                ++counts[choices[2 * token]];
                ++real_tokens;
            }
        }
        occupied_groups += real_tokens > 0;
        for (int64_t expert = 0; expert < blocks.num_experts && real_tokens > 0; ++expert) {
            loads[group * padded + expert] = static_cast<Gate>(counts[expert] / (real_tokens * real_tokens));
        }
    }
    return {std::move(loads), occupied_groups};
}

template <typename Logit>
void backward(const GradientArrays<Logit>& arrays, const GateOptions& options, const Blocks& blocks,
              GateOf<Logit> grad_loss) {
    using Gate = GateOf<Logit>;
    const int64_t padded = padded_row<Gate>(blocks.num_experts);
    auto [grad_gates, occupied_groups] = first_choice_loads<Gate>(arrays.choices, blocks);
    const Gate grad_balance = grad_loss * blocks.num_experts / std::max<int64_t>(1, occupied_groups);
    for (Gate& grad : grad_gates) {
        grad *= grad_balance;
    }
    const auto kernels = chosen_kernels<Logit>();
    blocks.in_parallel([&, &grad_gates = grad_gates](int64_t begin, int64_t end) {
        std::vector<Gate> row(padded);
        for (int64_t block = begin; block < end; ++block) {
            kernels.backward(arrays, options, blocks.range(block),
                             &grad_gates[blocks.group_of(block) * padded], row.data());
        }
    });
}

void check_backward(const Tensor& grad_weights, const Tensor& grad_auxiliary_loss, const Tensor& logits,
                    const Tensor& choices, const Tensor& slots, const Tensor& log_sums) {
    check_logits(logits);
    check_pairs(grad_weights, gate_type(logits), logits, "grad_weights");
    check_pairs(choices, ScalarType::Int, logits, "choices");
    check_pairs(slots, ScalarType::Int, logits, "slots");
    check_per_token(log_sums, gate_type(logits), logits, "log_sums");
    STD_TORCH_CHECK(
        grad_auxiliary_loss.numel() == 1 && grad_auxiliary_loss.scalar_type() == gate_type(logits),
        "`grad_auxiliary_loss` must be a scalar of the type of the gates");
    check_choices(choices.const_data_ptr<int32_t>(), nullptr, logits.size(0) * logits.size(1),
                  logits.size(2));
}

Tensor top2_gate_backward(const Tensor& grad_weights, const Tensor& grad_auxiliary_loss, const Tensor& logits,
                          const Tensor& choices, const Tensor& slots, const Tensor& log_sums,
                          bool renormalise_after) {
    const Tensor pairs = contiguous(choices), slot_pairs = contiguous(slots),
                 grads = contiguous(grad_weights);
    const Tensor rows = contiguous(logits), sums = contiguous(log_sums);
    check_backward(grads, grad_auxiliary_loss, rows, pairs, slot_pairs, sums);
    const Blocks blocks{rows.size(0), rows.size(1), rows.size(2)};
    GateOptions options{};
    options.num_tokens = blocks.groups * blocks.tokens;
    options.num_experts = blocks.num_experts;
    options.renormalise_after = renormalise_after;
    Tensor grad_logits = new_empty(rows, rows.sizes());
    dispatch_logits(rows, [&](auto logit) {
        using Logit = decltype(logit);
        using Gate = GateOf<Logit>;
        const GradientArrays<Logit> arrays{static_cast<const Logit*>(rows.const_data_ptr()),
                                           pairs.const_data_ptr<int32_t>(),
                                           slot_pairs.const_data_ptr<int32_t>(),
                                           sums.const_data_ptr<Gate>(),
                                           grads.const_data_ptr<Gate>(),
                                           static_cast<Logit*>(grad_logits.mutable_data_ptr())};
        backward(arrays, options, blocks, *grad_auxiliary_loss.const_data_ptr<Gate>());
    });
    return grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("top2_gate_backward", TORCH_BOX(&mnmt_moe::top2_gate_backward));
}
