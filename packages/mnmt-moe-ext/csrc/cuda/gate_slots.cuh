// Second and third kernel of the gate: running counts over the strips of each group, then slots and weights.
#pragma once

#include "gate_choice.cuh"

namespace mnmt_moe {

constexpr int kTileExperts = kWarpSize;
constexpr int kScanParts = 32;  // the strips of a group are cut into this many parts
constexpr int kScanThreads = kTileExperts * kScanParts;
constexpr float kRenormaliseEpsilon = 1e-9f;

// An expert's tokens and the sum of its gates over some strips.
struct ExpertTotals {
    int32_t first;
    int32_t second;
    float gates;
};

// The result of the scan over strips: totals.claims become the claims on the strips before.
struct GateTotals {
    int32_t* load;    // (groups, experts, 2)
    double* balance;  // (groups, tiles): sum of f_e m_e over a tile's experts
    int32_t* real;    // (groups): tokens that are not padding
    float* loss;      // ()
};

__host__ __device__ inline int64_t tiles(const GateShape& shape) {
    return ceil_div(shape.num_experts, kTileExperts);
}

struct ScanArguments {
    StripTotals strips;
    GateTotals totals;
    GateShape shape;
};

// The group's tokens that are not padding. The whole block calls.
__device__ inline int32_t group_real(const ScanArguments& arguments, int64_t group, int32_t* shared) {
    const int64_t strips = arguments.shape.strips_per_group();
    if (threadIdx.x == 0) {
        *shared = 0;
    }
    __syncthreads();
    for (int64_t strip = threadIdx.x; strip < strips; strip += kScanThreads) {
        atomicAdd(shared, arguments.strips.real[group * strips + strip]);
    }
    __syncthreads();
    return *shared;
}

// Calls function(claims, gate sum) for the strips of this thread's part, in order.
template <typename Function>
__device__ void each_strip(const ScanArguments& arguments, int64_t group, int expert, Function function) {
    const int64_t strips = arguments.shape.strips_per_group();
    const int64_t per_part = ceil_div<int64_t>(strips, kScanParts);
    const int64_t begin = warp_index() * per_part;
    const int64_t end = begin + per_part < strips ? begin + per_part : strips;
    for (int64_t index = begin; index < end; ++index) {
        const int64_t strip = group * strips + index;
        function(arguments.strips.claims + strip * 2 * arguments.shape.num_experts + expert,
                 arguments.strips.gate_sums[strip * arguments.shape.num_experts + expert]);
    }
}

// Adds up the parts [0, end) of this thread's expert.
__device__ inline ExpertTotals sum_parts(const ExpertTotals* parts, int end) {
    ExpertTotals sum{0, 0, 0};
    for (int part = 0; part < end; ++part) {
        const ExpertTotals& one = parts[part * kTileExperts + lane_index()];
        sum = {sum.first + one.first, sum.second + one.second, sum.gates + one.gates};
    }
    return sum;
}

__device__ inline void write_load(const ScanArguments& arguments, int64_t group, int expert,
                                  const ExpertTotals& totals, int32_t real) {
    const int num_experts = arguments.shape.num_experts;
    double balance = 0;
    if (expert < num_experts) {
        int32_t* load = arguments.totals.load + (group * num_experts + expert) * 2;
        load[0] = totals.first;
        load[1] = totals.second;
        balance = static_cast<double>(totals.first) * totals.gates;
    }
    balance = warp_sum(balance);
    if (lane_index() == 0) {
        arguments.totals.balance[blockIdx.x] = real == 0 ? 0 : balance / (static_cast<double>(real) * real);
        arguments.totals.real[group] = real;
    }
}

// A block takes 32 experts of a group, warp by warp a part of the strips.
__global__ void __launch_bounds__(kScanThreads) scan_kernel(ScanArguments arguments) {
    ExpertTotals* parts = dynamic_shared<ExpertTotals>();
    const int64_t group = blockIdx.x / tiles(arguments.shape);
    const int expert = blockIdx.x % tiles(arguments.shape) * kTileExperts + lane_index();
    const int32_t real = group_real(arguments, group, reinterpret_cast<int32_t*>(parts + kScanThreads));
    ExpertTotals part{0, 0, 0};
    if (expert < arguments.shape.num_experts) {
        each_strip(arguments, group, expert, [&](const int32_t* claims, float gates) {
            part = {part.first + claims[0], part.second + claims[arguments.shape.num_experts],
                    part.gates + gates};
        });
    }
    parts[threadIdx.x] = part;
    __syncthreads();
    ExpertTotals before = sum_parts(parts, warp_index());
    if (expert < arguments.shape.num_experts) {
        each_strip(arguments, group, expert, [&](int32_t* claims, float) {
            int32_t* second = claims + arguments.shape.num_experts;
            const ExpertTotals strip{*claims, *second, 0};
            *claims = before.first;
            *second = before.second;
            before = {before.first + strip.first, before.second + strip.second, 0};
        });
    }
    if (warp_index() == 0) {
        write_load(arguments, group, expert, sum_parts(parts, kScanParts), real);
    }
}

inline void launch_scan(const ScanArguments& arguments, cudaStream_t stream) {
    launch(scan_kernel, arguments.shape.groups * tiles(arguments.shape), kScanThreads,
           sizeof(ExpertTotals) * kScanThreads + sizeof(int32_t), stream, arguments);
}

struct SlotArguments {
    const int32_t* claims;  // (strips, 2, experts): on the strips before
    GateTotals totals;
    const int32_t* experts;  // (groups, tokens, 2)
    GateShape shape;
    int32_t capacity;
    bool renormalise_after;
    int32_t* slots;  // (groups, tokens, 2)
    float* weights;  // (groups, tokens, 2); on entry g_1 and g_2
};

// Tokens of this strip before this thread's that have the same expert.
__device__ inline int32_t rank_in_strip(const int32_t* strip_experts, int32_t expert) {
    int32_t rank = 0;
    for (int other = 0; other < kStripTokens; ++other) {
        rank += strip_experts[other] == expert && other < static_cast<int>(threadIdx.x);
    }
    return rank;
}

// The slot of a first (rank 0) or second choice (rank 1): every first choice comes before any second choice.
__device__ inline int32_t slot_of(const SlotArguments& arguments, int64_t group, const int32_t* strip_experts,
                                  int rank) {
    const int num_experts = arguments.shape.num_experts;
    const int32_t expert = strip_experts[threadIdx.x];
    if (expert == kNone) {
        return kNone;
    }
    int32_t position =
        arguments.claims[(2 * static_cast<int64_t>(blockIdx.x) + rank) * num_experts + expert] +
        rank_in_strip(strip_experts, expert);
    if (rank == 1) {
        const int32_t first = arguments.totals.load[(group * num_experts + expert) * 2];
        position += first < arguments.capacity ? first : arguments.capacity;
    }
    return position < arguments.capacity ? position : kNone;
}

__device__ inline void weigh(const SlotArguments& arguments, int64_t token, const int32_t* slots) {
    float* weights = arguments.weights + 2 * token;
    const float first = slots[0] != kNone ? weights[0] : 0;
    const float second = slots[1] != kNone ? weights[1] : 0;
    const float sum = arguments.renormalise_after ? first + second : weights[0] + weights[1];
    weights[0] = first / (sum + kRenormaliseEpsilon);
    weights[1] = second / (sum + kRenormaliseEpsilon);
}

__device__ inline void assign_slots(const SlotArguments& arguments, int32_t* strip_experts) {
    const Strip strip = Strip::of_block(arguments.shape);
    const int64_t index = strip.begin + threadIdx.x;
    const int64_t token = strip.group * arguments.shape.tokens + index;
    int32_t* experts[2] = {strip_experts, strip_experts + kStripTokens};
    for (int rank = 0; rank < 2; ++rank) {
        experts[rank][threadIdx.x] = index < strip.end ? arguments.experts[2 * token + rank] : kNone;
    }
    __syncthreads();
    if (index < strip.end) {
        const int32_t slots[2] = {slot_of(arguments, strip.group, experts[0], 0),
                                  slot_of(arguments, strip.group, experts[1], 1)};
        arguments.slots[2 * token] = slots[0];
        arguments.slots[2 * token + 1] = slots[1];
        weigh(arguments, token, slots);
    }
}

// experts * sum over groups of sum_e f_e m_e, over the groups that hold a real token.
__device__ inline void write_loss(const SlotArguments& arguments, double* shared) {
    const GateTotals& totals = arguments.totals;
    double balance = 0;
    int occupied = 0;
    for (int64_t index = threadIdx.x; index < arguments.shape.groups * tiles(arguments.shape);
         index += kStripTokens) {
        balance += totals.balance[index];
    }
    for (int64_t start = 0; start < arguments.shape.groups; start += kStripTokens) {
        const int64_t group = start + threadIdx.x;
        occupied += __syncthreads_count(group < arguments.shape.groups && totals.real[group] > 0);
    }
    shared[threadIdx.x] = balance;
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int thread = 0; thread < kStripTokens; ++thread) {
            sum += shared[thread];
        }
        *totals.loss = static_cast<float>(arguments.shape.num_experts * sum / (occupied > 0 ? occupied : 1));
    }
}

// A block a strip, a thread a token; the last block writes the loss.
__global__ void __launch_bounds__(kStripTokens) slot_kernel(SlotArguments arguments) {
    if (blockIdx.x < arguments.shape.strips()) {
        assign_slots(arguments, dynamic_shared<int32_t>());
    } else {
        write_loss(arguments, dynamic_shared<double>());
    }
}

inline void launch_slots(const SlotArguments& arguments, cudaStream_t stream) {
    launch(slot_kernel, arguments.shape.strips() + 1, kStripTokens, sizeof(double) * kStripTokens, stream,
           arguments);
}

}  // namespace mnmt_moe
