// Policies for the second expert. They are decided in float64 from the logits, so that every device decides
// alike.
#pragma once

#include "../philox.h"
#include "warp.cuh"

namespace mnmt_moe {

enum class Policy { always = 0, random = 1, sampled = 2 };

struct Draws {
    const int64_t* seed_and_step;  // null with Policy::always
    const int64_t* token_ids;
    int64_t layer;

    __device__ double of(int64_t token) const {
        return uniform_draw(seed_and_step[0], seed_and_step[1], layer, token_ids[token]);
    }
};

// What a token's experts are chosen by.
template <typename Logit>
struct Scores {
    const Logit* logits;
    const float* bias;  // or null
    int num_experts;

    __device__ float of(int expert) const {
        return to_float(logits[expert]) + (bias == nullptr ? 0 : bias[expert]);
    }

    __device__ double odds(int expert, float shift) const {
        return exp(static_cast<double>(of(expert)) - static_cast<double>(shift));
    }

    // Of the 32 experts from `start`, this lane's odds; 0 for the first choice and beyond the last expert.
    __device__ double odds_without(int first, int start, float shift) const {
        const int expert = start + lane_index();
        return expert < num_experts && expert != first ? odds(expert, shift) : 0;
    }
};

// Whether limit < g_2 / (g_1 + g_2).
template <typename Logit>
__device__ bool exceeds_of_two(const Scores<Logit>& logits, int first, int second, double limit) {
    const float larger = fmaxf(logits.of(first), logits.of(second));
    const double gate = logits.odds(second, larger);
    return limit * (logits.odds(first, larger) + gate) < gate;
}

// Whether limit < g_2. The whole warp calls.
template <typename Logit>
__device__ bool exceeds_of_all(const Scores<Logit>& logits, int second, float largest, double limit) {
    double sum = 0;
    for (int expert = lane_index(); expert < logits.num_experts; expert += kWarpSize) {
        sum += logits.odds(expert, largest);
    }
    return limit * warp_sum(sum) < logits.odds(second, largest);
}

// The expert at which the running sum of the odds without the first choice's passes draw * their total;
// `second`, the likeliest of them, if they are all 0. The whole warp calls.
template <typename Logit>
__device__ int sample_second(const Scores<Logit>& scores, int first, int second, double draw) {
    const float shift = scores.of(second);
    double total = 0;
    for (int start = 0; start < scores.num_experts; start += kWarpSize) {
        total += warp_sum(scores.odds_without(first, start, shift));
    }
    double before = 0;
    int last = second;
    for (int start = 0; start < scores.num_experts; start += kWarpSize) {
        const double odds = scores.odds_without(first, start, shift);
        const double running = before + warp_prefix_sum(odds);
        const unsigned possible = __ballot_sync(kAllLanes, odds > 0);
        const unsigned passed = __ballot_sync(kAllLanes, odds > 0 && running > draw * total);
        if (passed != 0) {
            return start + __ffs(passed) - 1;
        }
        last = possible != 0 ? start + kWarpSize - 1 - __clz(possible) : last;
        before = __shfl_sync(kAllLanes, running, kWarpSize - 1);
    }
    return last;
}

}  // namespace mnmt_moe
