// The logits of a token, and its gates, exp(logit) / sum.
#pragma once

#include <cmath>

#include "warp.cuh"

namespace mnmt_moe {

// What a warp reads together, again for every sum: from memory once, and then from the nearest cache.
struct Logits {
    const float* values;
    int num_experts;

    // Calls function(expert, logit) for every 32nd expert, in each lane from another on.
    template <typename Function>
    __device__ void each(Function function) const {
        for (int expert = lane_index(); expert < num_experts; expert += kWarpSize) {
            function(expert, values[expert]);
        }
    }

    // The largest that is not NaN. The whole warp calls.
    __device__ float largest() const {
        float largest = -INFINITY;
        each([&](int, float logit) { largest = fmaxf(largest, logit); });
        return warp_max(largest);
    }

    // The sum of exp(logit - shift), in float or double. The whole warp calls.
    template <typename T>
    __device__ T sum_of_exp(T shift) const {
        T sum = 0;
        each([&](int, float logit) { sum += std::exp(static_cast<T>(logit) - shift); });
        return warp_sum(sum);
    }
};

}  // namespace mnmt_moe
