// The row of the buffers that each choice takes, on the CPU.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <vector>

#include "operators.h"
#include "row_checks.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::parallel_for;

// Below this many choices a thread costs more to wake than it saves.
constexpr int64_t kChoicesPerThread = 32768;

// A routing's choices, contiguous.
struct Choices {
    Tensor experts;  // (groups, tokens, k)
    Tensor slots;    // (groups, tokens, k)
    int64_t num_experts;

    int64_t groups() const { return experts.size(0); }
};

// The rows that each expert has for each group, (experts, groups): its claims up to the capacity.
std::vector<int32_t> rows_per_bin(const Tensor& load, int64_t capacity) {
    const int64_t groups = load.size(0), num_experts = load.size(1), top_k = load.size(2);
    const Tensor loads = contiguous(load);
    const auto* claims = loads.const_data_ptr<int32_t>();
    std::vector<int32_t> counts(groups * num_experts);
    for (int64_t group = 0; group < groups; ++group) {
        for (int64_t expert = 0; expert < num_experts; ++expert) {
            int64_t all = 0;
            for (int64_t rank = 0; rank < top_k; ++rank, ++claims) {
                MNMT_CHECK(*claims >= 0, "`load` must not be negative");
                all += *claims;
            }
            counts[expert * groups + group] = static_cast<int32_t>(std::min(all, capacity));
        }
    }
    return counts;
}

// Writes the rows of some choices of a group; returns false if an expert or a slot does not exist.
// first_rows and counts (experts, groups): the row of slot 0, and how many rows there are.
bool rows_of_group(const int32_t* experts, const int32_t* slots, int64_t size, const Choices& choices,
                   const int32_t* first_rows, const int32_t* counts, int32_t* rows) {
    const int64_t groups = choices.groups();
    for (int64_t choice = 0; choice < size; ++choice) {
        const int32_t expert = experts[choice], slot = slots[choice];
        if (slot == -1) {
            rows[choice] = -1;
            continue;
        }
        if (expert < 0 || expert >= choices.num_experts || slot < 0 || slot >= counts[expert * groups]) {
            return false;
        }
        rows[choice] = first_rows[expert * groups] + slot;
    }
    return true;
}

Tensor all_rows(const Choices& choices, const std::vector<int32_t>& first_rows,
                const std::vector<int32_t>& counts) {
    const int64_t per_group = choices.experts.size(1) * choices.experts.size(2);
    Tensor rows = new_empty(choices.slots, choices.slots.sizes());
    const auto* experts = choices.experts.const_data_ptr<int32_t>();
    const auto* slots = choices.slots.const_data_ptr<int32_t>();
    auto* out = rows.mutable_data_ptr<int32_t>();
    std::atomic<bool> exist = true;
    parallel_for(0, choices.groups() * per_group, kChoicesPerThread, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const int64_t group = begin / per_group;
            const int64_t size = std::min(end, (group + 1) * per_group) - begin;
            if (!rows_of_group(experts + begin, slots + begin, size, choices, &first_rows[group],
                               &counts[group], out + begin)) {
                exist = false;
            }
            begin += size;
        }
    });
    MNMT_CHECK(exist, "`experts` and `slots` do not agree with `load`");
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

}  // namespace

std::tuple<Tensor, Tensor> capacity_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                           int64_t capacity, int64_t bin_size) {
    check_routing(experts, slots, load, capacity);
    MNMT_CHECK(bin_size >= capacity, "`bin_size` must be at least `capacity`");
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
    const int64_t num_rows = checked_num_rows(experts.size(2) * experts.size(0), experts.size(1));
    const int64_t groups = load.size(0), num_experts = load.size(1);
    const std::vector<int32_t> counts = rows_per_bin(load, capacity);
    std::vector<int32_t> first_rows(counts.size()), ends(num_experts);
    int64_t next = 0;
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        for (int64_t bin = expert * groups; bin < (expert + 1) * groups; ++bin) {
            first_rows[bin] = static_cast<int32_t>(next);
            next += counts[bin];
            MNMT_CHECK(next <= num_rows, "`load` counts more choices than there are");
        }
        ends[expert] = static_cast<int32_t>(next);
    }
    return {all_rows(contiguous_choices(experts, slots, load), first_rows, counts), copy_of(ends, load)};
}

}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("capacity_layout", TORCH_BOX(&mnmt_moe::capacity_layout));
    library.impl("ragged_layout", TORCH_BOX(&mnmt_moe::ragged_layout));
}
