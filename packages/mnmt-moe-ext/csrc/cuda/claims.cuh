// Second kernel of the gate: the positions of the claims on each expert, and the totals of each group.
#pragma once

#include "blocks.cuh"
#include "strips.cuh"

namespace mnmt_moe {

// Claims are counted in an array (groups, experts, top_k, strips): an expert's are in the order in which they
// take slots, so that their positions are prefix sums of the counts.
__host__ __device__ inline int64_t claim_counts(const GateShape& shape) {
    return shape.strips() * shape.num_experts * shape.top_k;
}

// The index of the claims of this block's strip on an expert, as the choice of a rank.
__device__ inline int64_t claim_index(const GateShape& shape, int rank, int expert) {
    const int64_t strips = shape.strips_per_group();
    const int64_t row = (block_index() / strips * shape.num_experts + expert) * shape.top_k + rank;
    return row * strips + block_index() % strips;
}

struct ScanArguments {
    GateShape shape;
    int32_t capacity;
    int32_t* claims;  // the counts; replaced by the position of the first of them
    int32_t* filled;  // (experts, groups): claims that have a slot
    // Of a gate only; otherwise null.
    const float* gate_sums = nullptr;  // (groups, experts, strips)
    const int32_t* real = nullptr;     // (groups, strips): tokens that are not padding
    int32_t* load = nullptr;           // (groups, experts, top_k)
    float* gate_means = nullptr;       // (groups, experts)
    int32_t* real_tokens = nullptr;    // (groups)
};

// The position of the first claim of a rank, or all claims for the rank behind the last.
__device__ inline int32_t first_of_rank(const int32_t* positions, const GateShape& shape, int rank,
                                        int32_t total) {
    const int64_t index = rank * shape.strips_per_group();
    return index < shape.top_k * shape.strips_per_group() ? positions[index] : total;
}

// Writes the totals of a group and an expert; the whole block calls.
__device__ inline void write_totals(const ScanArguments& arguments, const int32_t* positions, int32_t total) {
    const GateShape& shape = arguments.shape;
    const int64_t strips = shape.strips_per_group();
    const int64_t group = block_index() / shape.num_experts;
    float gates = 0;
    int32_t real = 0;
    for (int64_t strip = thread_index(); strip < strips; strip += kBlockThreads) {
        gates += arguments.gate_sums[block_index() * strips + strip];
        real += arguments.real[group * strips + strip];
    }
    gates = block_sum(gates);
    real = block_sum(real);
    const int rank = thread_index();
    if (rank < shape.top_k) {
        arguments.load[block_index() * shape.top_k + rank] =
            first_of_rank(positions, shape, rank + 1, total) - first_of_rank(positions, shape, rank, total);
    }
    if (thread_index() == 0) {
        arguments.gate_means[block_index()] = real == 0 ? 0 : gates / static_cast<float>(real);
    }
    if (thread_index() == 0 && block_index() % shape.num_experts == 0) {
        arguments.real_tokens[group] = real;
    }
}

// A block takes one expert of a group.
__global__ void __launch_bounds__(kBlockThreads) scan_kernel(ScanArguments arguments) {
    const GateShape& shape = arguments.shape;
    const int64_t length = shape.top_k * shape.strips_per_group();
    int32_t* claims = arguments.claims + block_index() * length;
    const int32_t total = replace_by_prefix_sums(claims, length);
    if (thread_index() == 0) {
        const int64_t group = block_index() / shape.num_experts;
        const int64_t expert = block_index() % shape.num_experts;
        arguments.filled[expert * shape.groups + group] =
            total < arguments.capacity ? total : arguments.capacity;
    }
    if (arguments.load != nullptr) {
        write_totals(arguments, claims, total);
    }
}

inline void launch_scan(const ScanArguments& arguments, cudaStream_t stream) {
    launch(scan_kernel, arguments.shape.groups * arguments.shape.num_experts, kBlockThreads,
           sizeof(int32_t) * kBlockWarps, stream, arguments);
}

}  // namespace mnmt_moe
