// The top-k gate on the CPU: blocks of tokens in parallel.
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
#include "operators.h"

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
    BlockTables(const Blocks& blocks, int top_k)
        : ranks(top_k * blocks.num_experts),
          gates(blocks.count(), blocks.num_experts),
          claims(blocks.count() * ranks) {}

    BlockSums<Gate> of(int64_t block) { return {gates.row(block), claims.data() + block * ranks}; }

    int64_t ranks;  // k * num_experts
    PaddedRows<Gate> gates;
    std::vector<int32_t> claims;
};

template <typename Logit>
void choose(const GateArrays<Logit>& arrays, const GateOptions& options, const Blocks& blocks,
            BlockTables<GateOf<Logit>>& tables) {
    using Gate = GateOf<Logit>;
    const auto kernels = chosen_kernels<Logit>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        PaddedRows<Gate> rows(2, blocks.num_experts);
        for (int64_t block = begin; block < end; ++block) {
            kernels.choose(arrays, options, blocks.range(block), tables.of(block),
                           {rows.row(0), rows.row(1)});
        }
    });
}

// What is known of the groups once all tokens have chosen.
template <typename Gate>
struct GroupTotals {
    Gate* gate_means;      // (groups, num_experts)
    int32_t* load;         // (groups, num_experts, k)
    int32_t* real_tokens;  // (groups)
};

// Counts a group's claims into `load` (num_experts, k) and replaces the count of each block and rank by the
// count before it: of all better ranks and of the rank's blocks before. Where some of those were too late, no
// slot is left anyway.
void count_claims(int32_t* claims, const Blocks& blocks, int top_k, int32_t* load) {
    std::vector<int64_t> totals(blocks.num_experts);
    for (int rank = 0; rank < top_k; ++rank) {
        const std::vector<int64_t> before = totals;
        for (int64_t block = 0; block < blocks.per_group(); ++block) {
            int32_t* counts = claims + (block * top_k + rank) * blocks.num_experts;
            for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
                totals[expert] += std::exchange(counts[expert], static_cast<int32_t>(totals[expert]));
            }
        }
        for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
            load[expert * top_k + rank] = static_cast<int32_t>(totals[expert] - before[expert]);
        }
    }
}

// Every real token has a first choice. `load` is the group's, (num_experts, k).
int32_t count_real_tokens(const int32_t* load, int64_t num_experts, int top_k) {
    int32_t count = 0;
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        count += load[expert * top_k];
    }
    return count;
}

// The mean gate of the group's real tokens, (num_experts).
template <typename Gate>
void average_gates(BlockTables<Gate>& tables, const Blocks& blocks, int64_t group, int32_t real_tokens,
                   Gate* means) {
    std::vector<double> sums(blocks.num_experts);
    for (int64_t block = 0; block < blocks.per_group(); ++block) {
        const Gate* gates = tables.gates.row(group * blocks.per_group() + block);
        for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
            sums[expert] += gates[expert];
        }
    }
    for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
        means[expert] = static_cast<Gate>(sums[expert] / std::max(1, real_tokens));
    }
}

template <typename Gate>
void total_groups(BlockTables<Gate>& tables, const Blocks& blocks, int top_k,
                  const GroupTotals<Gate>& totals) {
    parallel_for(0, blocks.groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            int32_t* load = totals.load + group * tables.ranks;
            count_claims(tables.of(group * blocks.per_group()).claims, blocks, top_k, load);
            totals.real_tokens[group] = count_real_tokens(load, blocks.num_experts, top_k);
            average_gates(tables, blocks, group, totals.real_tokens[group],
                          totals.gate_means + group * blocks.num_experts);
        }
    });
}

template <typename Logit>
void route(const GateArrays<Logit>& arrays, const GateOptions& options, const Blocks& blocks,
           const GroupTotals<GateOf<Logit>>& totals) {
    BlockTables<GateOf<Logit>> tables(blocks, options.top_k);
    choose(arrays, options, blocks, tables);
    total_groups(tables, blocks, options.top_k, totals);
    const auto kernels = chosen_kernels<Logit>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
            kernels.assign(arrays, options, blocks.range(block), tables.of(block).claims);
        }
    });
}

// The operator's results, in its order.
struct Results {
    Results(const Tensor& logits, int64_t top_k)
        : weights(new_empty(logits, {logits.size(0), logits.size(1), top_k}, gate_type(logits))),
          gate_means(new_empty(logits, {logits.size(0), logits.size(2)}, gate_type(logits))),
          log_sums(new_empty(logits, {logits.size(0), logits.size(1)}, gate_type(logits))),
          experts(new_empty(logits, weights.sizes(), ScalarType::Int)),
          slots(new_empty(logits, weights.sizes(), ScalarType::Int)),
          load(new_empty(logits, {logits.size(0), logits.size(2), top_k}, ScalarType::Int)),
          choices(new_empty(logits, weights.sizes(), ScalarType::Int)),
          real_tokens(new_empty(logits, {logits.size(0)}, ScalarType::Int)) {}

    template <typename Logit>
    GateArrays<Logit> arrays() {
        GateArrays<Logit> arrays{};
        arrays.choices = choices.mutable_data_ptr<int32_t>();
        arrays.experts = experts.mutable_data_ptr<int32_t>();
        arrays.slots = slots.mutable_data_ptr<int32_t>();
        arrays.weights = weights.mutable_data_ptr<GateOf<Logit>>();
        arrays.log_sums = log_sums.mutable_data_ptr<GateOf<Logit>>();
        return arrays;
    }

    template <typename Gate>
    GroupTotals<Gate> totals() {
        return {gate_means.mutable_data_ptr<Gate>(), load.mutable_data_ptr<int32_t>(),
                real_tokens.mutable_data_ptr<int32_t>()};
    }

    Tensor weights, gate_means, log_sums, experts, slots, load, choices, real_tokens;
};

// The bias in the type of the gates; no row without one.
template <typename Gate>
PaddedRows<Gate> padded_bias(const std::optional<Tensor>& bias, int64_t num_experts) {
    PaddedRows<Gate> padded(bias.has_value(), num_experts);
    if (bias.has_value()) {
        const float* numbers = bias->const_data_ptr<float>();
        std::copy(numbers, numbers + num_experts, padded.row(0));
    }
    return padded;
}

DrawKey draw_key(const std::optional<Tensor>& seed_and_step, int64_t layer) {
    const int64_t* numbers = data_or_null<int64_t>(seed_and_step);
    return numbers == nullptr ? DrawKey{0, 0, layer} : DrawKey{numbers[0], numbers[1], layer};
}

// The arguments that not every call has, which own the memory of the pointers to them.
struct OptionalArguments {
    std::optional<Tensor> bias, choices, seed_and_step, token_ids;

    OptionalArguments(const std::optional<Tensor>& bias_, const std::optional<Tensor>& choices_,
                      const std::optional<Tensor>& seed_and_step_, const std::optional<Tensor>& token_ids_)
        : bias(contiguous_if_any(bias_)),
          choices(contiguous_if_any(choices_)),
          seed_and_step(contiguous_if_any(seed_and_step_)),
          token_ids(contiguous_if_any(token_ids_)) {}

    void check(const Tensor& logits, const Tensor& padding, int64_t top_k) const {
        check_draws(logits, seed_and_step, token_ids, top_k);
        if (bias.has_value()) {
            check_bias(*bias, logits);
        }
        if (choices.has_value()) {
            check_per_choice(*choices, ScalarType::Int, logits, top_k, "choices");
            check_choices(*choices, padding, logits.size(2));
        }
    }
};

}  // namespace

Routed top_k_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                  const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                  const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                  double threshold, int64_t renormalise) {
    check_logits(logits);
    check_per_token(padding_mask, ScalarType::Bool, logits, "padding_mask");
    check_options(logits, top_k, capacity, layer, threshold, renormalise);
    const Tensor rows = contiguous(logits), padding = contiguous(padding_mask);
    const OptionalArguments optional(bias, choices, seed_and_step, token_ids);
    optional.check(rows, padding, top_k);
    const Blocks blocks{rows.size(0), rows.size(1), rows.size(2)};
    const GateOptions options{blocks.groups * blocks.tokens,
                              blocks.num_experts,
                              static_cast<int>(top_k),
                              capacity,
                              threshold,
                              static_cast<Renormalise>(renormalise),
                              draw_key(optional.seed_and_step, layer)};
    Results results(rows, top_k);
    dispatch_logits(rows, [&](auto logit) {
        using Logit = decltype(logit);
        using Gate = GateOf<Logit>;
        PaddedRows<Gate> biases = padded_bias<Gate>(optional.bias, blocks.num_experts);
        GateArrays<Logit> arrays = results.arrays<Logit>();
        arrays.logits = static_cast<const Logit*>(rows.const_data_ptr());
        arrays.padding = padding.const_data_ptr<bool>();
        arrays.bias = optional.bias.has_value() ? biases.row(0) : nullptr;
        arrays.forced = data_or_null<int32_t>(optional.choices);
        arrays.token_ids = data_or_null<int64_t>(optional.token_ids);
        route(arrays, options, blocks, results.totals<Gate>());
    });
    return {results.weights, results.gate_means, results.log_sums, results.experts,
            results.slots,   results.load,       results.choices,  results.real_tokens};
}

}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("top_k_gate", TORCH_BOX(&mnmt_moe::top_k_gate));
}
