// What a strip of tokens adds up to, in the shared memory of its block and then in that of the GPU.
#pragma once

#include "row.cuh"

namespace mnmt_moe {

// A strip's claims on an expert are counted in bytes, those of four ranks in a word.
constexpr int kRanksPerWord = 4;
static_assert(kLongestStrip < 256);

__host__ __device__ inline int claim_words(const GateShape& shape) {
    return ceil_div(shape.top_k, kRanksPerWord);
}

__host__ __device__ constexpr uint32_t claim_of(int rank) { return 1u << 8 * (rank % kRanksPerWord); }

__host__ __device__ constexpr int32_t claims_in(uint32_t word, int rank) {
    return static_cast<int32_t>(word >> 8 * (rank % kRanksPerWord) & 0xff);
}

// What a strip adds up to; strips are numbered group by group.
struct StripTotals {
    uint32_t* claims;  // (strips, words, experts): tokens with that expert as their choice of a rank
    float* gate_sums;  // (strips, experts)
    int32_t* real;     // (strips): tokens that are not padding
};

// Warps of a block; half as many where there are more experts than that, so that the sums of their gates fit
// into the shared memory of every GPU.
constexpr int kChoiceWarps = 8;
constexpr int kExpertsOfAllWarps = 2048;

// The shared memory of a block.
template <int kWarps>
struct ChoiceMemory {
    uint32_t* claims;  // (words, experts)
    float* gate_sums;  // (warps, experts)
    bool* real;        // (strip tokens)

    __device__ explicit ChoiceMemory(const GateShape& shape)
        : claims(dynamic_shared<uint32_t>()),
          gate_sums(dynamic_shared<float>() + claim_words(shape) * shape.num_experts),
          real(reinterpret_cast<bool*>(gate_sums + kWarps * shape.num_experts)) {}

    __host__ __device__ static int words(const GateShape& shape) {
        return (claim_words(shape) + kWarps) * shape.num_experts;
    }

    static size_t bytes(const GateShape& shape) { return sizeof(uint32_t) * words(shape) + kLongestStrip; }

    // The gate sums too, whose zero has the same bits.
    __device__ void clear_sums(const GateShape& shape) const {
        for (int index = threadIdx.x; index < words(shape); index += kWarps * kWarpSize) {
            claims[index] = 0;
        }
    }
};

}  // namespace mnmt_moe
