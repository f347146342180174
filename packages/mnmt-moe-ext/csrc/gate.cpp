// The top-2 gate on the CPU: blocks of tokens in parallel.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "gate_blocks.h"
#include "gate_types.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::parallel_for;

template <typename T>
const T* data_or_null(const std::optional<Tensor>& tensor) {
    return tensor.has_value() ? tensor->const_data_ptr<T>() : nullptr;
}

std::optional<Tensor> contiguous_if_any(const std::optional<Tensor>& tensor) {
    return tensor.has_value() ? std::optional(contiguous(*tensor)) : std::nullopt;
}

// Sums over the tokens of each block, and after `give_offsets` the claims made before each block.
template <typename Gate>
struct BlockTables {
    explicit BlockTables(const Blocks& blocks)
        : num_experts(blocks.num_experts),
          padded(padded_row<Gate>(num_experts)),
          gates(blocks.count() * padded),
          first(blocks.count() * num_experts),
          second(blocks.count() * num_experts) {}

    BlockSums<Gate> of(int64_t block) {
        return {gates.data() + block * padded, first.data() + block * num_experts,
                second.data() + block * num_experts};
    }

    int64_t num_experts;
    int64_t padded;
    std::vector<Gate> gates;
    std::vector<int32_t> first;
    std::vector<int32_t> second;
};

template <typename Logit>
void choose(const GateArrays<Logit>& arrays, const GateOptions& options, const Blocks& blocks,
            BlockTables<GateOf<Logit>>& tables) {
    const auto kernels = chosen_kernels<Logit>();
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        std::vector<GateOf<Logit>> row(tables.padded);
        std::vector<double> chances(options.policy == Policy::sampled ? tables.padded : 0);
        for (int64_t block = begin; block < end; ++block) {
            kernels.choose(arrays, options, blocks.range(block), tables.of(block), row.data(),
                           chances.data());
        }
    });
}

// Replaces each block's count of claims by the count before it, starting from `before`; the totals.
std::vector<int64_t> give_offsets(int32_t* counts, const Blocks& blocks, const std::vector<int64_t>& before) {
    std::vector<int64_t> totals = before;
    for (int64_t block = 0; block < blocks.per_group(); ++block) {
        for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
            int32_t& count = counts[block * blocks.num_experts + expert];
            totals[expert] += std::exchange(count, static_cast<int32_t>(totals[expert]));
        }
    }
    return totals;
}

// Counts a group's claims into `load` (num_experts, 2) and gives every block its offsets. Second choices
// start after all first choices: where some of those were too late, no slot is left anyway.
template <typename Gate>
void count_claims(BlockTables<Gate>& tables, const Blocks& blocks, int64_t group, int32_t* load) {
    const BlockSums<Gate> sums = tables.of(group * blocks.per_group());
    const auto first = give_offsets(sums.first, blocks, std::vector<int64_t>(blocks.num_experts));
    const auto both = give_offsets(sums.second, blocks, first);
    for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
        load[2 * expert] = static_cast<int32_t>(first[expert]);
        load[2 * expert + 1] = static_cast<int32_t>(both[expert] - first[expert]);
    }
}

// Sum over experts of f_e m_e; none for a group of padding only. `load` is the group's, (num_experts, 2).
template <typename Gate>
std::optional<double> balance(BlockTables<Gate>& tables, const Blocks& blocks, int64_t group,
                              const int32_t* load) {
    const Gate* gates = tables.of(group * blocks.per_group()).gates;
    std::vector<double> gate_sums(blocks.num_experts);
    for (int64_t block = 0; block < blocks.per_group(); ++block) {
        for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
            gate_sums[expert] += gates[block * tables.padded + expert];
        }
    }
    double real_tokens = 0, products = 0;
    for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
        real_tokens += load[2 * expert];
        products += load[2 * expert] * gate_sums[expert];
    }
    return real_tokens == 0 ? std::nullopt : std::optional(products / (real_tokens * real_tokens));
}

// E times the mean of `balance` over the groups that hold a real token. Writes `load`, (groups,
// num_experts, 2).
template <typename Gate>
double total_groups(BlockTables<Gate>& tables, const Blocks& blocks, int32_t* load) {
    std::vector<std::optional<double>> balances(blocks.groups);
    parallel_for(0, blocks.groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            int32_t* group_load = load + 2 * group * blocks.num_experts;
            count_claims(tables, blocks, group, group_load);
            balances[group] = balance(tables, blocks, group, group_load);
        }
    });
    double sum = 0;
    int64_t occupied_groups = 0;
    for (const auto& group : balances) {
        sum += group.value_or(0);
        occupied_groups += group.has_value();
    }
    return blocks.num_experts * sum / std::max<int64_t>(1, occupied_groups);
}

template <typename Logit>
double route(const GateArrays<Logit>& arrays, const GateOptions& options, const Blocks& blocks,
             int32_t* load) {
    BlockTables<GateOf<Logit>> tables(blocks);
    choose(arrays, options, blocks, tables);
    const double loss = total_groups(tables, blocks, load);
    const auto kernels = chosen_kernels<Logit>();
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
            const auto used = tables.of(block);
            kernels.assign(arrays, options, blocks.range(block), used.first, used.second);
        }
    });
    return loss;
}

using Routed = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Routed new_outputs(const Tensor& logits) {
    const int64_t groups = logits.size(0), tokens = logits.size(1);
    const auto gates = [&](auto... sizes) { return new_empty(logits, {sizes...}, gate_type(logits)); };
    const auto integers = [&](auto... sizes) { return new_empty(logits, {sizes...}, ScalarType::Int); };
    const int64_t pair = 2;
    return {gates(groups, tokens, pair),
            new_empty(logits, {}, gate_type(logits)),
            integers(groups, tokens, pair),
            integers(groups, tokens, pair),
            integers(groups, logits.size(2), pair),
            integers(groups, tokens, pair),
            gates(groups, tokens)};
}

DrawKey draw_key(const std::optional<Tensor>& seed_and_step, int64_t layer) {
    const int64_t* numbers = data_or_null<int64_t>(seed_and_step);
    return numbers == nullptr ? DrawKey{0, 0, layer} : DrawKey{numbers[0], numbers[1], layer};
}

Routed top2_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& choices,
                 const std::optional<Tensor>& seed_and_step, const std::optional<Tensor>& token_ids,
                 int64_t capacity, int64_t layer, int64_t policy, double threshold, bool renormalise_after) {
    check_logits(logits);
    check_per_token(padding_mask, ScalarType::Bool, logits, "padding_mask");
    check_options(capacity, layer, policy, threshold);
    check_draws(logits, seed_and_step, token_ids, policy != 0);
    const Blocks blocks{logits.size(0), logits.size(1), logits.size(2)};
    const Tensor rows = contiguous(logits), padding = contiguous(padding_mask);
    const auto forced = contiguous_if_any(choices), ids = contiguous_if_any(token_ids);
    if (forced.has_value()) {
        STD_TORCH_CHECK(policy != 2, "`choices` cannot be given with policy 2");
        check_pairs(*forced, ScalarType::Int, logits, "choices");
        check_choices(forced->const_data_ptr<int32_t>(), padding.const_data_ptr<bool>(),
                      blocks.groups * blocks.tokens, blocks.num_experts);
    }
    const GateOptions options{blocks.groups * blocks.tokens,
                              blocks.num_experts,
                              capacity,
                              static_cast<Policy>(policy),
                              threshold,
                              renormalise_after,
                              draw_key(contiguous_if_any(seed_and_step), layer)};
    Routed outputs = new_outputs(rows);
    auto& [weights, loss, experts, slots, load, made_choices, log_sums] = outputs;
    dispatch_logits(rows, [&, &weights = weights, &loss = loss, &experts = experts, &slots = slots,
                           &load = load, &made_choices = made_choices, &log_sums = log_sums](auto logit) {
        using Logit = decltype(logit);
        using Gate = GateOf<Logit>;
        const GateArrays<Logit> arrays{static_cast<const Logit*>(rows.const_data_ptr()),
                                       padding.const_data_ptr<bool>(),
                                       data_or_null<int32_t>(forced),
                                       data_or_null<int64_t>(ids),
                                       made_choices.mutable_data_ptr<int32_t>(),
                                       experts.mutable_data_ptr<int32_t>(),
                                       slots.mutable_data_ptr<int32_t>(),
                                       weights.template mutable_data_ptr<Gate>(),
                                       log_sums.template mutable_data_ptr<Gate>()};
        *loss.template mutable_data_ptr<Gate>() =
            static_cast<Gate>(route(arrays, options, blocks, load.mutable_data_ptr<int32_t>()));
    });
    return outputs;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("top2_gate", TORCH_BOX(&mnmt_moe::top2_gate));
}
