// One token's logits, spread over a warp: lane l holds those of the experts l, l + 32, l + 64 ...
#pragma once

#include <type_traits>

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kMaxExperts = 4096;

// A group's tokens are cut into strips; a block takes one, warp by warp and token by token.
constexpr int kStripTokens = 64;
constexpr int kStripWarps = 8;
constexpr int kStripThreads = kStripWarps * kWarpSize;

struct GateShape {
    int64_t groups;
    int64_t tokens;  // of a group
    int num_experts;

    __host__ __device__ int64_t strips_per_group() const { return ceil_div<int64_t>(tokens, kStripTokens); }
    __host__ __device__ int64_t strips() const { return groups * strips_per_group(); }
};

// The strip of this block.
struct Strip {
    int64_t group;
    int64_t begin;  // in the group
    int64_t end;

    __device__ static Strip of_block(const GateShape& shape) {
        const int64_t group = blockIdx.x / shape.strips_per_group();
        const int64_t begin = blockIdx.x % shape.strips_per_group() * kStripTokens;
        const int64_t end = begin + kStripTokens;
        return {group, begin, end < shape.tokens ? end : shape.tokens};
    }
};

template <int kPerLane>
struct Row {
    float values[kPerLane] = {};

    // Calls function(expert, value) for the experts of this lane.
    template <typename Function>
    __device__ void each(int num_experts, Function function) {
#pragma unroll
        for (int index = 0; index < kPerLane; ++index) {
            const int expert = index * kWarpSize + lane_index();
            if (expert < num_experts) {
                function(expert, values[index]);
            }
        }
    }

    template <typename Logit>
    __device__ void load(const Logit* logits, int num_experts) {
        each(num_experts, [&](int expert, float& value) { value = to_float(logits[expert]); });
    }
};

// Calls function(std::integral_constant<int, kPerLane>) with the least power of two that holds the experts.
template <int kPerLane = 1, typename Function>
void with_experts_per_lane(int num_experts, const Function& function) {
    if constexpr (kPerLane * kWarpSize < kMaxExperts) {
        if (num_experts > kPerLane * kWarpSize) {
            with_experts_per_lane<2 * kPerLane>(num_experts, function);
            return;
        }
    }
    function(std::integral_constant<int, kPerLane>{});
}

}  // namespace mnmt_moe
