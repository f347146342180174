// The rows of the experts' buffers. A bin is the rows of an expert for a group, in the order (experts,
// groups).
#pragma once

#include "row.cuh"

namespace mnmt_moe {

constexpr int kBasesThreads = kWarpSize * kWarpSize;

// Where the rows of each bin begin.
struct BinRows {
    const int32_t* bases;  // (experts, groups), or null where each bin has bin_size rows
    int32_t bin_size;

    __device__ int32_t row(int64_t bin, int32_t slot) const {
        return static_cast<int32_t>(bases == nullptr ? bin * bin_size : bases[bin]) + slot;
    }
};

// The number of the group's choices that have a slot at the expert.
__device__ inline int32_t rows_in_bin(const int32_t* load, const GateShape& shape, int32_t capacity,
                                      int64_t bin) {
    const int64_t group = bin % shape.groups;
    const int32_t* claims = load + (group * shape.num_experts + bin / shape.groups) * shape.top_k;
    int64_t sum = 0;
    for (int rank = 0; rank < shape.top_k; ++rank) {
        sum += claims[rank];
    }
    return static_cast<int32_t>(sum < capacity ? sum : capacity);
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
    bases_kernel(const int32_t* load, GateShape shape, int32_t capacity, int32_t* bases, int32_t* ends) {
    const int64_t bins = shape.num_experts * shape.groups;
    const int64_t per_thread = ceil_div<int64_t>(bins, kBasesThreads);
    const int64_t begin = threadIdx.x * per_thread;
    const int64_t end = begin + per_thread < bins ? begin + per_thread : bins;
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

// Writes bases (experts, groups), the rows of all bins before, and ends (experts), the rows through the
// expert's last bin. load (groups, experts, top_k).
inline void launch_bases(const int32_t* load, const GateShape& shape, int32_t capacity, int32_t* bases,
                         int32_t* ends, cudaStream_t stream) {
    if (shape.groups == 0) {
        clear(ends, sizeof(int32_t) * shape.num_experts, stream);
        return;
    }
    launch(bases_kernel, 1, kBasesThreads, sizeof(int32_t) * kWarpSize, stream, load, shape, capacity, bases,
           ends);
}

}  // namespace mnmt_moe
