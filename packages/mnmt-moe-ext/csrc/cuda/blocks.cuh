// Sums over the threads of a block.
#pragma once

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kBlockWarps = 4;
constexpr int kBlockThreads = kBlockWarps * kWarpSize;

// Sums over warps of a number that the last lane of each has. A block of kBlockThreads calls.
template <typename T>
struct WarpTotals {
    T before;  // the sum over the warps before this one
    T all;

    // `memory`: kBlockWarps numbers that the block shares.
    __device__ WarpTotals(T of_warp, T* memory) : before(0), all(0) {
        if (lane_index() == kWarpSize - 1) {
            memory[warp_index()] = of_warp;
        }
        __syncthreads();
        for (int warp = 0; warp < kBlockWarps; ++warp) {
            before += warp < warp_index() ? memory[warp] : 0;
            all += memory[warp];
        }
        __syncthreads();
    }
};

template <typename T>
__device__ T block_sum(T value) {
    return WarpTotals<T>(warp_sum(value), dynamic_shared<T>()).all;
}

// Replaces each of `counts` by the sum of those before it, and returns the sum of all. A block of
// kBlockThreads calls; a thread takes a run of numbers.
__device__ inline int32_t replace_by_prefix_sums(int32_t* counts, int64_t length) {
    const int64_t per_thread = ceil_div<int64_t>(length, kBlockThreads);
    const int64_t begin = thread_index() * per_thread;
    const int64_t end = begin + per_thread < length ? begin + per_thread : length;
    int32_t sum = 0;
    for (int64_t index = begin; index < end; ++index) {
        sum += counts[index];
    }
    const int32_t through_lane = warp_prefix_sum(sum);
    const WarpTotals<int32_t> totals(through_lane, dynamic_shared<int32_t>());
    int32_t before = totals.before + through_lane - sum;
    for (int64_t index = begin; index < end; ++index) {
        const int32_t count = counts[index];
        counts[index] = before;
        before += count;
    }
    __syncthreads();
    return totals.all;
}

}  // namespace mnmt_moe
