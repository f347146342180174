// Reductions of a warp, and constants of all kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "../options.h"
#include "launch.cuh"

namespace mnmt_moe {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

template <typename Integer>
__host__ __device__ constexpr Integer ceil_div(Integer count, Integer size) {
    return (count + size - 1) / size;
}

// The index, or kNone if it is outside [0, size): numbers in tensors must not lead out of bounds.
__device__ inline int32_t index_below(int32_t index, int64_t size) {
    return index >= 0 && index < size ? index : kNone;
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ T from_float(float value) {
    return value;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

// Unsigned integers in the order of the floats that they stand for: -0 as 0, NaN as -infinity.
__device__ inline uint32_t order_key(float value) {
    const uint32_t bits = __float_as_uint(value == value ? value + 0.0f : -INFINITY);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ inline float value_of_key(uint32_t key) {
    return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// Signed, as CUDA's are not: products with them must not wrap around unseen.
__device__ inline int64_t block_index() { return blockIdx.x; }
__device__ inline int thread_index() { return static_cast<int>(threadIdx.x); }

__device__ inline int lane_index() { return thread_index() % kWarpSize; }
__device__ inline int warp_index() { return thread_index() / kWarpSize; }

__device__ inline float warp_max(float value) {
    return value_of_key(__reduce_max_sync(kAllLanes, order_key(value)));
}

template <typename T>
__device__ T warp_sum(T value) {
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, offset);
    }
    return value;
}

// Sum over this lane and those before it.
template <typename T>
__device__ T warp_prefix_sum(T value) {
    for (int offset = 1; offset < kWarpSize; offset *= 2) {
        const T before = __shfl_up_sync(kAllLanes, value, offset);
        value += lane_index() >= offset ? before : T(0);
    }
    return value;
}

}  // namespace mnmt_moe
