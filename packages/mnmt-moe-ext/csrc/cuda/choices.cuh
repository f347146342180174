// The choices of a token: the experts of the largest logits, to which a bias may be added.
#pragma once

#include <climits>

#include "gates.cuh"

namespace mnmt_moe {

// An expert in the order of choices: larger scores come first, and the lower index among equals.
struct Candidate {
    float score = -INFINITY;
    int expert = INT_MAX;

    __device__ bool comes_before(const Candidate& other) const {
        return score > other.score || (score == other.score && expert < other.expert);
    }
};

// The first of the lanes' candidates.
__device__ inline Candidate warp_best(const Candidate& mine) {
    const float best = warp_max(mine.score);
    const unsigned expert = mine.score == best ? static_cast<unsigned>(mine.expert) : INT_MAX;
    return {best, static_cast<int>(__reduce_min_sync(kAllLanes, expert))};
}

// The first of the experts that come after `last`; NaN counts as -infinity. The whole warp calls.
__device__ inline Candidate best_after(const Candidate& last, const Logits& logits, const float* bias) {
    Candidate best;
    logits.each([&](int expert, float logit) {
        const float score = bias == nullptr ? logit : logit + bias[expert];
        const Candidate other{fmaxf(score, -INFINITY), expert};
        if (last.comes_before(other) && other.comes_before(best)) {
            best = other;
        }
    });
    return warp_best(best);
}

// Lane r gets the expert of rank r, and kNone from top_k on. The whole warp calls.
__device__ inline int32_t choose_largest(const Logits& logits, const float* bias, int top_k) {
    int32_t choice = kNone;
    Candidate last{INFINITY, -1};
    for (int rank = 0; rank < top_k; ++rank) {
        last = best_after(last, logits, bias);
        choice = lane_index() == rank ? last.expert : choice;
    }
    return choice;
}

}  // namespace mnmt_moe
