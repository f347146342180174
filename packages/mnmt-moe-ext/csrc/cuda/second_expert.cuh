// Whether a token keeps its second expert: decided in float64 from the logits, so that every device decides
// alike.
#pragma once

#include "../philox.h"
#include "warp.cuh"

namespace mnmt_moe {

struct Draws {
    const int64_t* seed_and_step;  // null to keep every second choice
    const int64_t* token_ids;
    int64_t layer;

    __device__ double of(int64_t token) const {
        return uniform_draw(seed_and_step[0], seed_and_step[1], layer, token_ids[token]);
    }
};

// The logits of a token.
struct TokenLogits {
    const float* logits;
    int num_experts;

    __device__ float of(int expert) const { return logits[expert]; }

    __device__ double odds(int expert, float shift) const {
        return exp(static_cast<double>(of(expert)) - static_cast<double>(shift));
    }
};

// Whether limit < g_2 / (g_1 + g_2).
__device__ inline bool exceeds_of_two(const TokenLogits& logits, int first, int second, double limit) {
    const float larger = fmaxf(logits.of(first), logits.of(second));
    const double gate = logits.odds(second, larger);
    return limit * (logits.odds(first, larger) + gate) < gate;
}

// Whether limit < g_2. The whole warp calls.
__device__ inline bool exceeds_of_all(const TokenLogits& logits, int second, float largest, double limit) {
    double sum = 0;
    for (int expert = lane_index(); expert < logits.num_experts; expert += kWarpSize) {
        sum += logits.odds(expert, largest);
    }
    return limit * warp_sum(sum) < logits.odds(second, largest);
}

}  // namespace mnmt_moe
