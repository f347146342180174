// The rows of buffers that routed tokens take.
#pragma once

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kLayoutThreads = 256;
constexpr int kEndsThreads = 1024;

struct LayoutShape {
    int64_t groups;
    int64_t tokens;  // of a group
    int num_experts;
};

struct RoutedTokens {
    const int32_t* experts;  // (groups, tokens, 2)
    const int32_t* slots;    // (groups, tokens, 2)
    const int32_t* load;     // (groups, experts, 2)
    LayoutShape shape;
    int32_t capacity;
};

// The number of tokens of the group that have a slot at the expert.
__device__ inline int32_t rows_in_bin(const RoutedTokens& routed, int64_t group, int64_t expert) {
    const int32_t* load = routed.load + (group * routed.shape.num_experts + expert) * 2;
    const int64_t claims = int64_t{load[0]} + load[1];
    return static_cast<int32_t>(claims < routed.capacity ? claims : routed.capacity);
}

// bases (experts, groups): the row of slot 0, or null where each bin has bin_size rows.
__device__ inline int32_t row_of(const RoutedTokens& routed, int64_t choice, const int32_t* bases,
                                 int32_t bin_size) {
    const int32_t slot = routed.slots[choice];
    if (slot == kNone || index_below(routed.experts[choice], routed.shape.num_experts) == kNone) {
        return kNone;
    }
    const int64_t group = choice / (2 * routed.shape.tokens);
    const int64_t bin = routed.experts[choice] * routed.shape.groups + group;
    return static_cast<int32_t>(bases == nullptr ? bin * bin_size : bases[bin]) + slot;
}

// filled (experts, groups).
__global__ void __launch_bounds__(kLayoutThreads)
    capacity_layout_kernel(RoutedTokens routed, int32_t bin_size, int32_t* rows, int32_t* filled) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * kLayoutThreads + threadIdx.x;
    const LayoutShape& shape = routed.shape;
    if (index < 2 * shape.groups * shape.tokens) {
        rows[index] = row_of(routed, index, nullptr, bin_size);
    }
    if (index < shape.num_experts * shape.groups) {
        filled[index] = rows_in_bin(routed, index % shape.groups, index / shape.groups);
    }
}

inline void launch_capacity_layout(const RoutedTokens& routed, int32_t bin_size, int32_t* rows,
                                   int32_t* filled, cudaStream_t stream) {
    const LayoutShape& shape = routed.shape;
    const int64_t choices = 2 * shape.groups * shape.tokens;
    const int64_t bins = shape.num_experts * shape.groups;
    launch(capacity_layout_kernel, ceil_div<int64_t>(choices > bins ? choices : bins, kLayoutThreads),
           kLayoutThreads, 0, stream, routed, bin_size, rows, filled);
}

// A warp an expert: bases (experts, groups) count the expert's rows before each group's, totals (experts)
// all.
__global__ void __launch_bounds__(kLayoutThreads)
    expert_rows_kernel(RoutedTokens routed, int32_t* bases, int32_t* totals) {
    const int64_t expert = static_cast<int64_t>(blockIdx.x) * (kLayoutThreads / kWarpSize) + warp_index();
    const int64_t groups = routed.shape.groups;
    if (expert >= routed.shape.num_experts) {
        return;
    }
    int32_t before = 0;
    for (int64_t start = 0; start < groups; start += kWarpSize) {
        const int64_t group = start + lane_index();
        const int32_t count = group < groups ? rows_in_bin(routed, group, expert) : 0;
        const int32_t through = before + warp_prefix_sum(count);
        if (group < groups) {
            bases[expert * groups + group] = through - count;
        }
        before = __shfl_sync(kAllLanes, through, kWarpSize - 1);
    }
    if (lane_index() == 0) {
        totals[expert] = before;
    }
}

// One block turns the experts' totals into their ends, in place.
__global__ void __launch_bounds__(kEndsThreads) ends_kernel(int num_experts, int32_t* ends) {
    int32_t* warp_totals = dynamic_shared<int32_t>();
    int32_t before = 0;
    for (int start = 0; start < num_experts; start += kEndsThreads) {
        const int expert = start + threadIdx.x;
        const int32_t through_lane = warp_prefix_sum(expert < num_experts ? ends[expert] : 0);
        if (lane_index() == kWarpSize - 1) {
            warp_totals[warp_index()] = through_lane;
        }
        __syncthreads();
        const int32_t through_warp = warp_prefix_sum(warp_totals[lane_index()]);
        const int previous = warp_index() - 1;
        const int32_t warps_before = __shfl_sync(kAllLanes, through_warp, previous < 0 ? 0 : previous);
        if (expert < num_experts) {
            ends[expert] = before + (previous < 0 ? 0 : warps_before) + through_lane;
        }
        before += __shfl_sync(kAllLanes, through_warp, kWarpSize - 1);
        __syncthreads();
    }
}

__global__ void __launch_bounds__(kLayoutThreads)
    ragged_rows_kernel(RoutedTokens routed, const int32_t* bases, const int32_t* ends, int32_t* rows) {
    const int64_t choice = static_cast<int64_t>(blockIdx.x) * kLayoutThreads + threadIdx.x;
    if (choice < 2 * routed.shape.groups * routed.shape.tokens) {
        const int32_t row = row_of(routed, choice, bases, 0);
        const int32_t expert = routed.experts[choice];
        rows[choice] = row == kNone || expert == 0 ? row : row + ends[expert - 1];
    }
}

// bases (experts, groups) is only needed in between.
inline void launch_ragged_layout(const RoutedTokens& routed, int32_t* bases, int32_t* rows, int32_t* ends,
                                 cudaStream_t stream) {
    const LayoutShape& shape = routed.shape;
    const int64_t choices = 2 * shape.groups * shape.tokens;
    launch(expert_rows_kernel, ceil_div<int64_t>(shape.num_experts, kLayoutThreads / kWarpSize),
           kLayoutThreads, 0, stream, routed, bases, ends);
    launch(ends_kernel, 1, kEndsThreads, sizeof(int32_t) * kEndsThreads / kWarpSize, stream,
           shape.num_experts, ends);
    launch(ragged_rows_kernel, ceil_div<int64_t>(choices, kLayoutThreads), kLayoutThreads, 0, stream, routed,
           bases, ends, rows);
}

}  // namespace mnmt_moe
