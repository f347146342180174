// Second kernel of the gate: running counts of claims over the strips of each group, and the group's totals.
#pragma once

#include "gate_choice.cuh"

namespace mnmt_moe {

constexpr int kTileExperts = kWarpSize;
constexpr int kScanParts = kWarpSize;  // the strips of a group are cut into this many parts
constexpr int kScanThreads = kTileExperts * kScanParts;

__host__ __device__ inline int64_t tiles(const GateShape& shape) {
    return ceil_div(shape.num_experts, kTileExperts);
}

struct ScanArguments {
    StripTotals strips;
    GateShape shape;
    int32_t capacity;
    int32_t* positions;    // (strips, top_k, experts): of the strip's first claim among all on that expert
    int32_t* load;         // (groups, experts, top_k)
    float* gate_means;     // (groups, experts)
    int32_t* real_tokens;  // (groups)
    int32_t* filled;       // (experts, groups): rows of capacity bins with a token, or null
};

// The shared memory of a block: (parts, experts of the tile), with a column more, so that the lanes of a warp
// use different banks in both directions.
template <int kRanks>
struct PartTotals {
    int32_t claims[kRanks][kScanParts][kTileExperts + 1];
    float gates[kScanParts][kTileExperts + 1];
};

// The strips of a part, for one expert.
struct PartOfStrips {
    int64_t begin;
    int64_t end;
    int expert;

    // A warp has a part, a lane an expert.
    __device__ PartOfStrips(const GateShape& shape, int64_t group, int expert_) : expert(expert_) {
        const int64_t strips = shape.strips_per_group();
        const int64_t per_part = ceil_div<int64_t>(strips, kScanParts);
        const int64_t first = warp_index() * per_part < strips ? warp_index() * per_part : strips;
        begin = group * strips + first;
        end = begin + (first + per_part < strips ? per_part : strips - first);
        end = expert < shape.num_experts ? end : begin;
    }
};

// The claims of a strip on an expert, rank after rank; 0 for ranks beyond top_k.
template <int kRanks>
struct Claims {
    int32_t of_rank[kRanks];

    __device__ Claims(const ScanArguments& arguments, int64_t strip, int expert) {
        constexpr int kWords = kRanks / kRanksPerWord;
        const int num_experts = arguments.shape.num_experts;
        const uint32_t* words = arguments.strips.claims + strip * kWords * num_experts + expert;
#pragma unroll
        for (int rank = 0; rank < kRanks; ++rank) {
            of_rank[rank] = claims_in(words[rank / kRanksPerWord * num_experts], rank);
        }
    }
};

template <int kRanks>
__device__ void add_up_part(const ScanArguments& arguments, const PartOfStrips& part,
                            PartTotals<kRanks>& totals) {
    int32_t sums[kRanks] = {};
    float gates = 0;
    for (int64_t strip = part.begin; strip < part.end; ++strip) {
        const Claims<kRanks> claims(arguments, strip, part.expert);
        gates += arguments.strips.gate_sums[strip * arguments.shape.num_experts + part.expert];
#pragma unroll
        for (int rank = 0; rank < kRanks; ++rank) {
            sums[rank] += claims.of_rank[rank];
        }
    }
#pragma unroll
    for (int rank = 0; rank < kRanks; ++rank) {
        totals.claims[rank][warp_index()][lane_index()] = sums[rank];
    }
    totals.gates[warp_index()][lane_index()] = gates;
}

// The group's tokens that are not padding. The whole warp calls.
__device__ inline int32_t count_real(const ScanArguments& arguments, int64_t group) {
    const int64_t strips = arguments.shape.strips_per_group();
    int32_t real = 0;
    for (int64_t strip = lane_index(); strip < strips; strip += kWarpSize) {
        real += arguments.strips.real[group * strips + strip];
    }
    return warp_sum(real);
}

// A lane a part: turns the claims of each part on one expert of the tile into the position of its first, and
// returns all claims on the expert. Those of a rank come after all those of the ranks before.
template <int kRanks>
__device__ int32_t number_claims(const ScanArguments& arguments, int64_t group, int expert,
                                 PartTotals<kRanks>& totals) {
    const int top_k = arguments.shape.top_k;
    int32_t before = 0;
#pragma unroll
    for (int rank = 0; rank < kRanks; ++rank) {
        int32_t& claims = totals.claims[rank][lane_index()][warp_index()];
        const int32_t through = warp_prefix_sum(claims);
        const int32_t of_rank = __shfl_sync(kAllLanes, through, kWarpSize - 1);
        if (lane_index() == 0 && rank < top_k && expert < arguments.shape.num_experts) {
            arguments.load[(group * arguments.shape.num_experts + expert) * top_k + rank] = of_rank;
        }
        claims = before + through - claims;
        before += of_rank;
    }
    return before;
}

template <int kRanks>
__device__ void write_group(const ScanArguments& arguments, int64_t group, int expert,
                            PartTotals<kRanks>& totals) {
    const int32_t claims = number_claims(arguments, group, expert, totals);
    const float gates = warp_sum(totals.gates[lane_index()][warp_index()]);
    const int32_t real = count_real(arguments, group);
    if (lane_index() != 0 || expert >= arguments.shape.num_experts) {
        return;
    }
    arguments.gate_means[group * arguments.shape.num_experts + expert] =
        real == 0 ? 0 : gates / static_cast<float>(real);
    if (arguments.filled != nullptr) {
        arguments.filled[expert * arguments.shape.groups + group] =
            claims < arguments.capacity ? claims : arguments.capacity;
    }
    if (expert == 0) {
        arguments.real_tokens[group] = real;
    }
}

template <int kRanks>
__device__ void write_positions(const ScanArguments& arguments, const PartOfStrips& part,
                                const PartTotals<kRanks>& totals) {
    const GateShape& shape = arguments.shape;
    int32_t before[kRanks];
#pragma unroll
    for (int rank = 0; rank < kRanks; ++rank) {
        before[rank] = totals.claims[rank][warp_index()][lane_index()];
    }
    for (int64_t strip = part.begin; strip < part.end; ++strip) {
        const Claims<kRanks> claims(arguments, strip, part.expert);
#pragma unroll
        for (int rank = 0; rank < kRanks; ++rank) {
            if (rank < shape.top_k) {
                arguments.positions[(strip * shape.top_k + rank) * shape.num_experts + part.expert] =
                    before[rank];
            }
            before[rank] += claims.of_rank[rank];
        }
    }
}

// A block takes 32 experts of a group: first a warp a part of the strips and a lane an expert, then the other
// way around, then the first way again.
template <int kRanks>
__global__ void __launch_bounds__(kScanThreads) scan_kernel(ScanArguments arguments) {
    auto& totals = *dynamic_shared<PartTotals<kRanks>>();
    const int64_t group = blockIdx.x / tiles(arguments.shape);
    const int first = static_cast<int>(blockIdx.x % tiles(arguments.shape)) * kTileExperts;
    const PartOfStrips part(arguments.shape, group, first + lane_index());
    add_up_part(arguments, part, totals);
    __syncthreads();
    write_group(arguments, group, first + warp_index(), totals);
    __syncthreads();
    write_positions(arguments, part, totals);
}

inline void launch_scan(const ScanArguments& arguments, cudaStream_t stream) {
    const int64_t blocks = arguments.shape.groups * tiles(arguments.shape);
    if (claim_words(arguments.shape) == 1) {
        launch(scan_kernel<kRanksPerWord>, blocks, kScanThreads, sizeof(PartTotals<kRanksPerWord>), stream,
               arguments);
    } else {
        launch(scan_kernel<kMaxTopK>, blocks, kScanThreads, sizeof(PartTotals<kMaxTopK>), stream, arguments);
    }
}

}  // namespace mnmt_moe
