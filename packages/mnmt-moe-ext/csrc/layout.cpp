// The row of the buffers that each choice takes, on the CPU.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <vector>

#include "row_checks.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::parallel_for;

// Below this many tokens a thread costs more to wake than it saves.
constexpr int64_t kTokensPerThread = 16384;

// A routing's choices, contiguous.
struct Choices {
    Tensor experts;  // (groups, tokens, 2)
    Tensor slots;    // (groups, tokens, 2)
    int64_t num_experts;

    int64_t groups() const { return experts.size(0); }
    int64_t tokens() const { return experts.size(1); }
};

// The rows that each expert has for each group, (experts, groups): its claims up to the capacity.
std::vector<int32_t> rows_per_bin(const Tensor& load, int64_t capacity) {
    const int64_t groups = load.size(0), num_experts = load.size(1);
    const Tensor loads = contiguous(load);
    const auto* claims = loads.const_data_ptr<int32_t>();
    std::vector<int32_t> counts(groups * num_experts);
    for (int64_t group = 0; group < groups; ++group) {
        for (int64_t expert = 0; expert < num_experts; ++expert, claims += 2) {
            STD_TORCH_CHECK(claims[0] >= 0 && claims[1] >= 0, "`load` must not be negative");
            const int64_t both = static_cast<int64_t>(claims[0]) + claims[1];
            counts[expert * groups + group] = static_cast<int32_t>(std::min(both, capacity));
        }
    }
    return counts;
}

// Writes the rows of one token's choices; returns false if an expert or a slot does not exist.
bool token_rows(const int32_t* experts, const int32_t* slots, int64_t group, const Choices& choices,
                const std::vector<int32_t>& first_rows, const std::vector<int32_t>& counts, int32_t* rows) {
    for (int choice = 0; choice < 2; ++choice) {
        const int32_t expert = experts[choice], slot = slots[choice];
        if (slot == -1) {
            rows[choice] = -1;
            continue;
        }
        if (expert < 0 || expert >= choices.num_experts) {
            return false;
        }
        const int64_t bin = expert * choices.groups() + group;
        if (slot < 0 || slot >= counts[bin]) {
            return false;
        }
        rows[choice] = first_rows[bin] + slot;
    }
    return true;
}

// first_rows (experts, groups): the row of slot 0.
Tensor all_rows(const Choices& choices, const std::vector<int32_t>& first_rows,
                const std::vector<int32_t>& counts) {
    const int64_t groups = choices.groups(), tokens = choices.tokens();
    Tensor rows = new_empty(choices.slots, {groups, tokens, 2});
    const auto* experts = choices.experts.const_data_ptr<int32_t>();
    const auto* slots = choices.slots.const_data_ptr<int32_t>();
    auto* out = rows.mutable_data_ptr<int32_t>();
    std::atomic<bool> exist = true;
    parallel_for(0, groups * tokens, kTokensPerThread, [&](int64_t begin, int64_t end) {
        for (int64_t token = begin; token < end; ++token) {
            if (!token_rows(experts + 2 * token, slots + 2 * token, token / tokens, choices, first_rows,
                            counts, out + 2 * token)) {
                exist = false;
            }
        }
    });
    STD_TORCH_CHECK(exist, "`experts` and `slots` do not agree with `load`");
    return rows;
}

Choices contiguous_choices(const Tensor& experts, const Tensor& slots, const Tensor& load) {
    return Choices{contiguous(experts), contiguous(slots), load.size(1)};
}

Tensor copy_of(const std::vector<int32_t>& values, const Tensor& like) {
    Tensor tensor = new_empty(like, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int32_t>());
    return tensor;
}

std::tuple<Tensor, Tensor> capacity_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                           int64_t capacity, int64_t bin_size) {
    check_routing(experts, slots, load, capacity);
    STD_TORCH_CHECK(bin_size >= capacity, "`bin_size` must be at least `capacity`");
    const int64_t bins = load.size(0) * load.size(1);
    checked_num_rows(bins, bin_size);
    std::vector<int32_t> first_rows(bins);
    for (int64_t bin = 0; bin < bins; ++bin) {
        first_rows[bin] = static_cast<int32_t>(bin * bin_size);
    }
    const std::vector<int32_t> counts = rows_per_bin(load, capacity);
    return {all_rows(contiguous_choices(experts, slots, load), first_rows, counts), copy_of(counts, load)};
}

std::tuple<Tensor, Tensor> ragged_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                         int64_t capacity) {
    check_routing(experts, slots, load, capacity);
    const int64_t num_rows = checked_num_rows(2 * experts.size(0), experts.size(1));
    const int64_t groups = load.size(0), num_experts = load.size(1);
    const std::vector<int32_t> counts = rows_per_bin(load, capacity);
    std::vector<int32_t> first_rows(counts.size()), ends(num_experts);
    int64_t next = 0;
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        for (int64_t bin = expert * groups; bin < (expert + 1) * groups; ++bin) {
            first_rows[bin] = static_cast<int32_t>(next);
            next += counts[bin];
            STD_TORCH_CHECK(next <= num_rows, "`load` counts more choices than there are");
        }
        ends[expert] = static_cast<int32_t>(next);
    }
    return {all_rows(contiguous_choices(experts, slots, load), first_rows, counts), copy_of(ends, load)};
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("capacity_layout", TORCH_BOX(&mnmt_moe::capacity_layout));
    library.impl("ragged_layout", TORCH_BOX(&mnmt_moe::ragged_layout));
}
