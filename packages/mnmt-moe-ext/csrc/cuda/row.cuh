// The tokens of a gate, cut into strips, and logits of one token, spread over a warp.
#pragma once

#include <type_traits>

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kMaxExperts = 4096;
constexpr int kMaxPerLane = 8;  // more logits in registers at a time, and the compiler spills

// A strip is the work of one block. A long one leaves less to add up, and a warp has room for 32 tokens;
// shorter ones make blocks enough for a small batch. How long they are depends on no GPU, so that sums do not
// either.
constexpr int kLongestStrip = kWarpSize;
constexpr int kShortestStrip = 8;
constexpr int64_t kEnoughStrips = 256;  // about two for each multiprocessor of an H100

struct GateShape {
    int64_t groups;
    int64_t tokens;  // of a group
    int num_experts;
    int top_k;
    int strip_tokens;

    GateShape(int64_t groups_, int64_t tokens_, int num_experts_, int top_k_)
        : groups(groups_),
          tokens(tokens_),
          num_experts(num_experts_),
          top_k(top_k_),
          strip_tokens(kLongestStrip) {
        while (strip_tokens > kShortestStrip && strips() < kEnoughStrips) {
            strip_tokens /= 2;
        }
    }

    __host__ __device__ int64_t strips_per_group() const { return ceil_div<int64_t>(tokens, strip_tokens); }
    __host__ __device__ int64_t strips() const { return groups * strips_per_group(); }
    __host__ __device__ int64_t all_tokens() const { return groups * tokens; }
};

// The strip of this block.
struct Strip {
    int64_t group;
    int64_t begin;  // in the group
    int64_t end;

    __device__ static Strip of_block(const GateShape& shape) {
        const int64_t group = blockIdx.x / shape.strips_per_group();
        const int64_t begin = blockIdx.x % shape.strips_per_group() * shape.strip_tokens;
        const int64_t end = begin + shape.strip_tokens;
        return {group, begin, end < shape.tokens ? end : shape.tokens};
    }
};

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
