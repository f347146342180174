// `route` on the CPU: blocks of tokens in parallel.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../route_arguments.h"
#include "blocks.h"
#include "gate_types.h"

namespace mnmt_moe {
namespace {

using torch::stable::parallel_for;

// Sums over the tokens of each block, and after `count_claims` the claims made before each block.
template <typename T>
struct BlockTables {
    BlockTables(const Blocks& blocks, int top_k)
        : ranks(top_k * blocks.num_experts),
          gates(blocks.count(), blocks.num_experts),
          claims(blocks.count() * ranks) {}

    BlockSums<T> of(int64_t block) { return {gates.row(block), claims.data() + block * ranks}; }

    int64_t ranks;  // k * num_experts
    PaddedRows<T> gates;
    std::vector<int32_t> claims;
};

template <typename T>
void choose(const GateArrays<T>& arrays, const GateOptions& options, const Blocks& blocks,
            BlockTables<T>& tables) {
    const auto kernels = chosen_kernels<T>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        PaddedRows<T> rows(2, blocks.num_experts);
        for (int64_t block = begin; block < end; ++block) {
            kernels.choose(arrays, options, blocks.range(block), tables.of(block),
                           {rows.row(0), rows.row(1)});
        }
    });
}

// What is known of the groups once all tokens have chosen.
template <typename T>
struct GroupTotals {
    T* gate_means;         // (groups, num_experts)
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
template <typename T>
void average_gates(BlockTables<T>& tables, const Blocks& blocks, int64_t group, int32_t real_tokens,
                   T* means) {
    std::vector<double> sums(blocks.num_experts);
    for (int64_t block = 0; block < blocks.per_group(); ++block) {
        const T* gates = tables.gates.row(group * blocks.per_group() + block);
        for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
            sums[expert] += gates[expert];
        }
    }
    for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
        means[expert] = static_cast<T>(sums[expert] / std::max(1, real_tokens));
    }
}

template <typename T>
void total_groups(BlockTables<T>& tables, const Blocks& blocks, int top_k, const GroupTotals<T>& totals) {
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

template <typename T>
void assign(const GateArrays<T>& arrays, const GateOptions& options, const Blocks& blocks,
            BlockTables<T>& tables, const std::vector<int32_t>& first_rows) {
    const auto kernels = chosen_kernels<T>(options.top_k);
    blocks.in_parallel([&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
            kernels.assign(arrays, options, blocks.range(block), tables.of(block).claims,
                           first_rows.data() + blocks.group_of(block) * blocks.num_experts);
        }
    });
}

// The group's choices that have a slot at the expert.
int64_t rows_in_bin(const RouteCall& call, int64_t group, int64_t expert) {
    const auto* claims =
        read<int32_t>(call.load) + (group * call.shape.num_experts + expert) * call.shape.top_k;
    return std::min<int64_t>(std::accumulate(claims, claims + call.shape.top_k, int64_t{0}), call.capacity);
}

// Writes `filled` or `ends` and returns the row of every bin's slot 0, (groups, num_experts).
std::vector<int32_t> lay_out(const RouteCall& call) {
    const int64_t groups = call.shape.groups, num_experts = call.shape.num_experts;
    auto* filled_or_ends = write<int32_t>(call.filled_or_ends);
    std::vector<int32_t> first_rows(call.shape.bins());
    int64_t next = 0;
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        for (int64_t group = 0; group < groups; ++group) {
            const int64_t filled = rows_in_bin(call, group, expert);
            first_rows[group * num_experts + expert] = static_cast<int32_t>(next);
            next += call.is_ragged() ? filled : call.bin_size;
            if (!call.is_ragged()) {
                filled_or_ends[expert * groups + group] = static_cast<int32_t>(filled);
            }
        }
        if (call.is_ragged()) {
            filled_or_ends[expert] = static_cast<int32_t>(next);
        }
    }
    return first_rows;
}

// The bias in the type of the gates; no row without one.
template <typename T>
PaddedRows<T> padded_bias(const std::optional<Tensor>& bias, int64_t num_experts) {
    PaddedRows<T> padded(bias.has_value(), num_experts);
    if (bias.has_value()) {
        const auto* numbers = read<float>(bias);
        std::copy(numbers, numbers + num_experts, padded.row(0));
    }
    return padded;
}

DrawKey draw_key(const RouteCall& call) {
    const auto* numbers = read<int64_t>(call.seed_and_step);
    return numbers == nullptr ? DrawKey{} : DrawKey{numbers[0], numbers[1], call.layer};
}

template <typename T>
void run_for(const RouteCall& call) {
    const auto [groups, tokens, num_experts, top_k] = call.shape;
    const Blocks blocks{groups, tokens, num_experts};
    const GateOptions options{groups * tokens, num_experts,      static_cast<int>(top_k), call.capacity,
                              call.threshold,  call.renormalise, draw_key(call)};
    const PaddedRows<T> bias = padded_bias<T>(call.bias, num_experts);
    const GateArrays<T> arrays{read<T>(call.logits),
                               read<bool>(call.padding_mask),
                               call.bias.has_value() ? bias.row(0) : nullptr,
                               read<int32_t>(call.choices),
                               read<int64_t>(call.token_ids),
                               write<int32_t>(call.used_choices),
                               write<int32_t>(call.experts),
                               write<int32_t>(call.slots),
                               write<int32_t>(call.rows),
                               write<T>(call.weights),
                               write<T>(call.log_sums)};
    BlockTables<T> tables(blocks, options.top_k);
    choose(arrays, options, blocks, tables);
    total_groups(tables, blocks, options.top_k,
                 {write<T>(call.gate_means), write<int32_t>(call.load), write<int32_t>(call.real_tokens)});
    assign(arrays, options, blocks, tables, lay_out(call));
}

void run(const RouteCall& call) {
    if (call.choices.has_value()) {
        check_choices(*call.choices, read<bool>(call.padding_mask), call.shape.num_experts);
    }
    dispatch_logits(call.logits, [&](auto logit) { run_for<decltype(logit)>(call); });
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("route", TORCH_BOX(&mnmt_moe::route<mnmt_moe::run>));
}
