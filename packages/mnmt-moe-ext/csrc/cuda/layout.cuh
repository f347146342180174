// The rows of buffers that routed tokens take. One .cu file includes this.
#pragma once

#include "bins.cuh"

namespace mnmt_moe {

constexpr int kLayoutThreads = 256;
constexpr int kBasesThreads = kWarpSize * kWarpSize;

struct RoutedTokens {
    const int32_t* experts;  // (groups, tokens, top_k)
    const int32_t* slots;    // (groups, tokens, top_k)
    const int32_t* load;     // (groups, experts, top_k)
    LayoutShape shape;
    int32_t capacity;
};

// The number of the group's choices that have a slot at the expert.
__device__ inline int32_t rows_in_bin(const int32_t* load, const LayoutShape& shape, int32_t capacity,
                                      int64_t bin) {
    const int64_t group = bin % shape.groups;
    const int32_t* claims = load + (group * shape.num_experts + bin / shape.groups) * shape.top_k;
    int64_t sum = 0;
    for (int rank = 0; rank < shape.top_k; ++rank) {
        sum += claims[rank];
    }
    return static_cast<int32_t>(sum < capacity ? sum : capacity);
}

__device__ inline int32_t row_of_choice(const RoutedTokens& routed, const BinRows& bins, int64_t choice) {
    const int32_t slot = routed.slots[choice];
    const int32_t expert = index_below(routed.experts[choice], routed.shape.num_experts);
    const int64_t group = choice / (routed.shape.top_k * routed.shape.tokens);
    return slot == kNone || expert == kNone ? kNone : bins.row(expert * routed.shape.groups + group, slot);
}

// filled (experts, groups), or null.
__global__ void __launch_bounds__(kLayoutThreads)
    rows_kernel(RoutedTokens routed, BinRows bins, int32_t* rows, int32_t* filled) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * kLayoutThreads + threadIdx.x;
    if (index < routed.shape.choices()) {
        rows[index] = row_of_choice(routed, bins, index);
    }
    if (filled != nullptr && index < routed.shape.bins()) {
        filled[index] = rows_in_bin(routed.load, routed.shape, routed.capacity, index);
    }
}

inline void launch_rows(const RoutedTokens& routed, const BinRows& bins, int32_t* rows, int32_t* filled,
                        cudaStream_t stream) {
    const LayoutShape& shape = routed.shape;
    const int64_t threads =
        filled != nullptr && shape.bins() > shape.choices() ? shape.bins() : shape.choices();
    launch(rows_kernel, ceil_div<int64_t>(threads, kLayoutThreads), kLayoutThreads, 0, stream, routed, bins,
           rows, filled);
}

inline void launch_capacity_layout(const RoutedTokens& routed, int32_t bin_size, int32_t* rows,
                                   int32_t* filled, cudaStream_t stream) {
    launch_rows(routed, {nullptr, bin_size}, rows, filled, stream);
}

// The sum over this thread and those before it. A block of 32 warps calls.
__device__ inline int32_t block_prefix_sum(int32_t value, int32_t* warp_totals) {
    const int32_t through_lane = warp_prefix_sum(value);
    if (lane_index() == kWarpSize - 1) {
        warp_totals[warp_index()] = through_lane;
    }
    __syncthreads();
    const int32_t through_warp = warp_prefix_sum(warp_totals[lane_index()]);
    const int previous = warp_index() - 1;
    const int32_t before = __shfl_sync(kAllLanes, through_warp, previous < 0 ? 0 : previous);
    return (previous < 0 ? 0 : before) + through_lane;
}

// One block, a thread a run of bins.
__global__ void __launch_bounds__(kBasesThreads)
    bases_kernel(const int32_t* load, LayoutShape shape, int32_t capacity, int32_t* bases, int32_t* ends) {
    const int64_t per_thread = ceil_div<int64_t>(shape.bins(), kBasesThreads);
    const int64_t begin = threadIdx.x * per_thread;
    const int64_t end = begin + per_thread < shape.bins() ? begin + per_thread : shape.bins();
    int32_t sum = 0;
    for (int64_t bin = begin; bin < end; ++bin) {
        sum += rows_in_bin(load, shape, capacity, bin);
    }
    int32_t before = block_prefix_sum(sum, dynamic_shared<int32_t>()) - sum;
    for (int64_t bin = begin; bin < end; ++bin) {
        bases[bin] = before;
        before += rows_in_bin(load, shape, capacity, bin);
        if (bin % shape.groups == shape.groups - 1) {
            ends[bin / shape.groups] = before;
        }
    }
}

void launch_bases(const int32_t* load, const LayoutShape& shape, int32_t capacity, int32_t* bases,
                  int32_t* ends, cudaStream_t stream) {
    if (shape.groups == 0) {
        clear(ends, sizeof(int32_t) * shape.num_experts, stream);
        return;
    }
    launch(bases_kernel, 1, kBasesThreads, sizeof(int32_t) * kWarpSize, stream, load, shape, capacity, bases,
           ends);
}

// bases (experts, groups) is only needed in between.
inline void launch_ragged_layout(const RoutedTokens& routed, int32_t* bases, int32_t* rows, int32_t* ends,
                                 cudaStream_t stream) {
    launch_bases(routed.load, routed.shape, routed.capacity, bases, ends, stream);
    launch_rows(routed, {bases, 0}, rows, nullptr, stream);
}

}  // namespace mnmt_moe
