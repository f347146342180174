// The tokens of a gate, cut into strips.
#pragma once

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kMaxExperts = 4096;

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
        const int64_t group = block_index() / shape.strips_per_group();
        const int64_t begin = block_index() % shape.strips_per_group() * shape.strip_tokens;
        const int64_t end = begin + shape.strip_tokens;
        return {group, begin, end < shape.tokens ? end : shape.tokens};
    }
};

}  // namespace mnmt_moe
