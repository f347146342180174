// The two largest of a row spread over a warp.
#pragma once

#include <climits>
#include <cmath>

#include "row.cuh"

namespace mnmt_moe {

// Unsigned integers in the order of the floats they stand for, all of them positive: -0 as 0, NaN as
// -infinity.
__device__ inline uint32_t order_key(float value) {
    const uint32_t bits = __float_as_uint(value == value ? value + 0.0f : -INFINITY);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ inline float value_of_key(uint32_t key) {
    return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

struct Candidate {
    uint32_t key = 0;
    int expert = INT_MAX;
};

struct Top2 {
    float largest;
    int first;
    int second;
};

// The best of the lanes' candidates, the lower index first among equals.
__device__ inline Candidate warp_best(Candidate mine) {
    const uint32_t key = __reduce_max_sync(kAllLanes, mine.key);
    const unsigned expert = mine.key == key ? mine.expert : INT_MAX;
    return {key, static_cast<int>(__reduce_min_sync(kAllLanes, expert))};
}

template <int kPerLane>
__device__ Top2 warp_top2(Row<kPerLane>& row, int num_experts) {
    Candidate best, next;
    row.each(num_experts, [&](int expert, float value) {
        const Candidate candidate{order_key(value), expert};
        if (candidate.key > best.key) {
            next = best;
            best = candidate;
        } else if (candidate.key > next.key) {
            next = candidate;
        }
    });
    const Candidate first = warp_best(best);
    const Candidate second = warp_best(best.expert == first.expert ? next : best);
    return {value_of_key(first.key), first.expert, second.expert};
}

}  // namespace mnmt_moe
