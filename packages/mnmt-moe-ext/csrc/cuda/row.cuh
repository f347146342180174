// Logits of one token, spread over a warp.
#pragma once

#include <type_traits>

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kMaxPerLane = 8;  // more logits in registers at a time, and the compiler spills

// Logits of some experts in a row: lane l holds the 1st, 33rd, 65th ... from l on, -infinity beyond the last
// expert and in the place of NaN.
template <int kPerLane>
struct Row {
    static constexpr int kExperts = kPerLane * kWarpSize;

    float values[kPerLane];
    bool has_nan;  // this lane

    // Calls function(index of the expert, value) for the experts of this lane, of `count` that are left.
    template <typename Function>
    __device__ void each(int count, Function function) {
#pragma unroll
        for (int index = 0; index < kPerLane; ++index) {
            if (index * kWarpSize < count - lane_index()) {
                function(index * kWarpSize + lane_index(), values[index]);
            }
        }
    }

    __device__ void load(const float* logits, int count) {
#pragma unroll
        for (float& value : values) {
            value = -INFINITY;
        }
        each(count, [&](int expert, float& value) { value = logits[expert]; });
        has_nan = false;
#pragma unroll
        for (float& value : values) {
            has_nan |= value != value;
            value = fmaxf(value, -INFINITY);
        }
    }

    __device__ float warp_max() const {
        float largest = -INFINITY;
#pragma unroll
        for (const float value : values) {
            largest = fmaxf(largest, value);
        }
        return value_of_key(__reduce_max_sync(kAllLanes, order_key(largest)));
    }

    // Replaces the logits by exp(logit - shift) and returns the lane's sum, which is NaN if a logit was.
    __device__ float exponentiate(float shift) {
        float sum = has_nan ? NAN : 0;
#pragma unroll
        for (float& value : values) {
            value = expf(value - shift);
            sum += value;
        }
        return sum;
    }
};

// Calls function(first) for the experts that a row holds at a time.
template <int kPerLane, typename Function>
__device__ void each_part(int num_experts, Function function) {
#pragma unroll 1
    for (int first = 0; first < num_experts; first += Row<kPerLane>::kExperts) {
        function(first);
    }
}

// Calls function(std::integral_constant<int, kPerLane>) with the least power of two that holds the experts,
// or the largest that there is.
template <int kPerLane = 1, typename Function>
void with_experts_per_lane(int num_experts, const Function& function) {
    if constexpr (kPerLane < kMaxPerLane) {
        if (num_experts > kPerLane * kWarpSize) {
            with_experts_per_lane<2 * kPerLane>(num_experts, function);
            return;
        }
    }
    function(std::integral_constant<int, kPerLane>{});
}

}  // namespace mnmt_moe
