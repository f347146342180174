// The largest of a row spread over a warp.
#pragma once

#include <climits>

#include "row.cuh"

namespace mnmt_moe {

// An expert in the order of choices: larger scores come first, and the lower index among equals.
struct Candidate {
    float score = -INFINITY;
    int expert = INT_MAX;

    __device__ bool comes_before(const Candidate& other) const {
        return score > other.score || (score == other.score && expert < other.expert);
    }
};

// The best of the lanes' candidates.
__device__ inline Candidate warp_best(Candidate mine) {
    const uint32_t key = order_key(mine.score);
    const uint32_t best = __reduce_max_sync(kAllLanes, key);
    const unsigned expert = key == best ? mine.expert : INT_MAX;
    return {value_of_key(best), static_cast<int>(__reduce_min_sync(kAllLanes, expert))};
}

// The first of this lane's experts, counted from 0, that come after the last choice. From the back, so that
// the lower index wins, and among -infinities too.
template <int kPerLane>
__device__ Candidate best_after(const Row<kPerLane>& scores, const Candidate& last) {
    const int past =
        (last.expert - lane_index()) >> 5;  // up to this index, experts of an equal score came before
    float best = -INFINITY;
    int best_index = INT_MAX / kWarpSize;
#pragma unroll
    for (int index = kPerLane - 1; index >= 0; --index) {
        const float score = scores.values[index];
        if ((score < last.score || (score == last.score && index > past)) && score >= best) {
            best = score;
            best_index = index;
        }
    }
    return {best, best_index * kWarpSize + lane_index()};
}

// The best experts of what a warp has looked at: lane r holds that of rank r.
class TopK {
  public:
    // Looks at a row too, whose experts are numbered from `first`. The whole warp calls.
    template <int kPerLane>
    __device__ void add(const Row<kPerLane>& scores, int first, int top_k) {
        Candidate last{INFINITY, -1};
        Candidate ranked;
#pragma unroll 1
        for (int rank = 0; rank < top_k; ++rank) {
            Candidate best = best_after(scores, {last.score, last.expert - first});
            best.expert += first;
            const bool is_left = last.comes_before(mine_);
            last = warp_best(is_left && mine_.comes_before(best) ? mine_ : best);
            ranked = lane_index() == rank ? last : ranked;
        }
        mine_ = ranked;
    }

    // kNone for lanes from top_k on.
    __device__ int32_t expert(int top_k) const { return lane_index() < top_k ? mine_.expert : kNone; }

  private:
    Candidate mine_;
};

}  // namespace mnmt_moe
