// Policies for the second expert. They are decided in float64 from the logits, so that every device decides
// alike.
#pragma once

#include <cmath>

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

// exp(logit - shift) of one expert.
template <typename Logit>
__device__ double unnormalised_gate(const Logit* logits, int expert, float shift) {
    return exp(static_cast<double>(to_float(logits[expert])) - static_cast<double>(shift));
}

// Whether limit < g_2 / (g_1 + g_2).
template <typename Logit>
__device__ bool exceeds_of_two(const Logit* logits, int first, int second, double limit) {
    const float larger = fmaxf(to_float(logits[first]), to_float(logits[second]));
    const double gate = unnormalised_gate(logits, second, larger);
    return limit * (unnormalised_gate(logits, first, larger) + gate) < gate;
}

// Whether limit < g_2. The whole warp calls.
template <typename Logit>
__device__ bool exceeds_of_all(const Logit* logits, int num_experts, int second, float largest,
                               double limit) {
    double sum = 0;
    for (int expert = lane_index(); expert < num_experts; expert += kWarpSize) {
        sum += unnormalised_gate(logits, expert, largest);
    }
    return limit * warp_sum(sum) < unnormalised_gate(logits, second, largest);
}

// Of the 32 experts from `start`, this lane's unnormalised gate; 0 for the first choice and beyond the last
// expert.
template <typename Logit>
__device__ double gate_without_first(const Logit* logits, int num_experts, int start, int first,
                                     float shift) {
    const int expert = start + lane_index();
    return expert < num_experts && expert != first ? unnormalised_gate(logits, expert, shift) : 0;
}

// The expert at which the running sum of the gates without the first choice's passes draw * their total;
// `second`, the largest of them, if they are all 0. The whole warp calls.
template <typename Logit>
__device__ int sample_second(const Logit* logits, int num_experts, int first, int second, double draw) {
    const float shift = to_float(logits[second]);
    double total = 0;
    for (int start = 0; start < num_experts; start += kWarpSize) {
        total += warp_sum(gate_without_first(logits, num_experts, start, first, shift));
    }
    double before = 0;
    int last = second;
    for (int start = 0; start < num_experts; start += kWarpSize) {
        const double gate = gate_without_first(logits, num_experts, start, first, shift);
        const double running = before + warp_prefix_sum(gate);
        const unsigned possible = __ballot_sync(kAllLanes, gate > 0);
        const unsigned passed = __ballot_sync(kAllLanes, gate > 0 && running > draw * total);
        if (passed != 0) {
            return start + __ffs(passed) - 1;
        }
        last = possible != 0 ? start + kWarpSize - 1 - __clz(possible) : last;
        before = __shfl_sync(kAllLanes, running, kWarpSize - 1);
    }
    return last;
}

}  // namespace mnmt_moe
