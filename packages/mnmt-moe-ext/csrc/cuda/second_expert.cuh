// Whether a token keeps its second expert: decided in float64 from the logits, so that every device decides
// alike.
#pragma once

#include "../philox.h"
#include "gates.cuh"

namespace mnmt_moe {

struct Draws {
    const int64_t* seed_and_step;  // null to keep every second choice
    const int64_t* token_ids;
    int64_t layer;

    __device__ double of(int64_t token) const {
        return uniform_draw(seed_and_step[0], seed_and_step[1], layer, token_ids[token]);
    }
};

// Whether limit < g_2 / (g_1 + g_2).
__device__ inline bool exceeds_of_two(const Logits& logits, int first, int second, double limit) {
    const double one = logits.values[first], other = logits.values[second];
    const double larger = fmax(one, other), gate = exp(other - larger);
    return limit * (exp(one - larger) + gate) < gate;
}

// Whether limit < g_2. The whole warp calls.
__device__ inline bool exceeds_of_all(const Logits& logits, int second, double largest, double limit) {
    return limit * logits.sum_of_exp(largest) < exp(logits.values[second] - largest);
}

}  // namespace mnmt_moe
