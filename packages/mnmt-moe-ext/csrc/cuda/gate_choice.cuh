// First kernel of the gate: softmax and choices, a warp a token, and what each strip of tokens adds up to.
#pragma once

#include "row.cuh"
#include "second_expert.cuh"
#include "top2.cuh"

namespace mnmt_moe {

// What a strip adds up to; strips are numbered group by group.
struct StripTotals {
    int32_t* claims;   // (strips, 2, experts): tokens whose first or second expert it is
    float* gate_sums;  // (strips, experts)
    int32_t* real;     // (strips): tokens that are not padding
};

template <typename Logit>
struct ChoiceArguments {
    const Logit* logits;    // (groups, tokens, experts)
    const bool* padding;    // (groups, tokens)
    const int32_t* forced;  // (groups, tokens, 2), or null
    Draws draws;
    Policy policy;
    double threshold;
    bool renormalise_after;
    GateShape shape;
    int32_t* choices;  // (groups, tokens, 2): before the policy
    int32_t* experts;  // (groups, tokens, 2): after it
    float* gates;      // (groups, tokens, 2): g_1 and g_2
    float* log_sums;   // (groups, tokens)
    StripTotals totals;
};

struct Choice {
    int first;
    int second;
    bool second_kept;
};

// A forced choice that no expert has would be read out of bounds: it counts as padding.
template <typename Logit>
__device__ bool is_real(const ChoiceArguments<Logit>& arguments, int64_t token) {
    if (arguments.padding[token] || arguments.forced == nullptr) {
        return !arguments.padding[token];
    }
    const int num_experts = arguments.shape.num_experts;
    return index_below(arguments.forced[2 * token], num_experts) != kNone &&
           index_below(arguments.forced[2 * token + 1], num_experts) != kNone;
}

template <typename Logit>
__device__ bool keeps_second(const ChoiceArguments<Logit>& arguments, int64_t token, int first, int second,
                             float largest) {
    if (arguments.policy != Policy::random) {
        return true;
    }
    const int num_experts = arguments.shape.num_experts;
    const Logit* logits = arguments.logits + token * num_experts;
    const double limit = arguments.draws.of(token) * arguments.threshold;
    return arguments.renormalise_after ? exceeds_of_all(logits, num_experts, second, largest, limit)
                                       : exceeds_of_two(logits, first, second, limit);
}

template <typename Logit>
__device__ Choice choose(const ChoiceArguments<Logit>& arguments, int64_t token, Top2 top) {
    int first = top.first;
    int second = top.second;
    if (arguments.forced != nullptr) {
        first = arguments.forced[2 * token];
        second = arguments.forced[2 * token + 1];
    } else if (arguments.policy == Policy::sampled) {
        const int num_experts = arguments.shape.num_experts;
        second = sample_second(arguments.logits + token * num_experts, num_experts, first, second,
                               arguments.draws.of(token));
    }
    return {first, second, keeps_second(arguments, token, first, second, top.largest)};
}

// Replaces the logits by exp(logit - largest) and returns their sum.
template <int kPerLane>
__device__ float exponentiate(Row<kPerLane>& row, int num_experts, float largest) {
    float sum = 0;
    row.each(num_experts, [&](int, float& value) {
        value = expf(value - largest);
        sum += value;
    });
    return warp_sum(sum);
}

template <typename Logit>
__device__ void write_padding(const ChoiceArguments<Logit>& arguments, int64_t token) {
    if (lane_index() < 2) {
        arguments.choices[2 * token + lane_index()] = kNone;
        arguments.experts[2 * token + lane_index()] = kNone;
        arguments.gates[2 * token + lane_index()] = 0;
    }
    if (lane_index() == 0) {
        arguments.log_sums[token] = 0;
    }
}

// Lane 0 writes the first choice, lane 1 the second.
template <typename Logit>
__device__ void write_choice(const ChoiceArguments<Logit>& arguments, int64_t token, Choice choice,
                             float largest, float sum, int32_t* claims) {
    const int rank = lane_index();
    const int num_experts = arguments.shape.num_experts;
    if (rank == 0) {
        arguments.log_sums[token] = largest + logf(sum);
    }
    if (rank < 2) {
        const int expert = rank == 0 ? choice.first : choice.second;
        const bool keep = rank == 0 || choice.second_kept;
        const float logit = to_float(arguments.logits[token * num_experts + expert]);
        arguments.choices[2 * token + rank] = expert;
        arguments.experts[2 * token + rank] = keep ? expert : kNone;
        arguments.gates[2 * token + rank] = expf(logit - largest) / sum;
        if (keep) {
            atomicAdd(claims + rank * num_experts + expert, 1);
        }
    }
}

// The shared memory of a block.
struct ChoiceMemory {
    int32_t* claims;   // (2, experts)
    float* gate_sums;  // (warps, experts)
    bool* real;        // (strip tokens)

    __device__ explicit ChoiceMemory(int num_experts)
        : claims(dynamic_shared<int32_t>()),
          gate_sums(dynamic_shared<float>() + 2 * num_experts),
          real(reinterpret_cast<bool*>(gate_sums + kStripWarps * num_experts)) {}

    static size_t bytes(int num_experts) {
        return sizeof(int32_t) * (2 + kStripWarps) * static_cast<size_t>(num_experts) + kStripTokens;
    }

    // The gate sums too, whose zero has the same bits.
    __device__ void clear_sums(int num_experts) const {
        for (int index = threadIdx.x; index < (2 + kStripWarps) * num_experts; index += kStripThreads) {
            claims[index] = 0;
        }
    }
};

template <typename Logit>
__device__ void write_totals(const ChoiceArguments<Logit>& arguments, const ChoiceMemory& memory) {
    const int num_experts = arguments.shape.num_experts;
    const int64_t strip = blockIdx.x;
    for (int index = threadIdx.x; index < 2 * num_experts; index += kStripThreads) {
        arguments.totals.claims[strip * 2 * num_experts + index] = memory.claims[index];
    }
    for (int expert = threadIdx.x; expert < num_experts; expert += kStripThreads) {
        float sum = 0;
        for (int warp = 0; warp < kStripWarps; ++warp) {
            sum += memory.gate_sums[warp * num_experts + expert];
        }
        arguments.totals.gate_sums[strip * num_experts + expert] = sum;
    }
}

template <int kPerLane, typename Logit>
__device__ void choose_for_token(const ChoiceArguments<Logit>& arguments, int64_t token,
                                 const ChoiceMemory& memory) {
    const int num_experts = arguments.shape.num_experts;
    float* gate_sums = memory.gate_sums + warp_index() * num_experts;
    Row<kPerLane> row;
    row.load(arguments.logits + token * num_experts, num_experts);
    const Top2 top = warp_top2(row, num_experts);
    const Choice choice = choose(arguments, token, top);
    const float sum = exponentiate(row, num_experts, top.largest);
    const float scale = 1 / sum;
    row.each(num_experts, [&](int expert, float value) { gate_sums[expert] += value * scale; });
    write_choice(arguments, token, choice, top.largest, sum, memory.claims);
}

// How many tokens of the strip are not padding, and which. The whole block calls.
template <typename Logit>
__device__ int find_real(const ChoiceArguments<Logit>& arguments, const Strip& strip,
                         const ChoiceMemory& memory) {
    const int64_t index = strip.begin + threadIdx.x;
    const bool real = index < strip.end && is_real(arguments, strip.group * arguments.shape.tokens + index);
    if (threadIdx.x < kStripTokens) {
        memory.real[threadIdx.x] = real;
    }
    return __syncthreads_count(real);
}

// Two blocks fit on a processor as far as a row leaves the registers for it.
constexpr int choice_blocks(int per_lane) { return per_lane <= 64 ? 2 : 1; }

template <int kPerLane, typename Logit>
__global__ void __launch_bounds__(kStripThreads, choice_blocks(kPerLane))
    choice_kernel(ChoiceArguments<Logit> arguments) {
    const ChoiceMemory memory(arguments.shape.num_experts);
    const Strip strip = Strip::of_block(arguments.shape);
    memory.clear_sums(arguments.shape.num_experts);
    const int real = find_real(arguments, strip, memory);
    for (int64_t index = strip.begin + warp_index(); index < strip.end; index += kStripWarps) {
        const int64_t token = strip.group * arguments.shape.tokens + index;
        if (memory.real[index - strip.begin]) {
            choose_for_token<kPerLane>(arguments, token, memory);
        } else {
            write_padding(arguments, token);
        }
    }
    __syncthreads();
    write_totals(arguments, memory);
    if (threadIdx.x == 0) {
        arguments.totals.real[blockIdx.x] = real;
    }
}

template <typename Logit>
void launch_choice(const ChoiceArguments<Logit>& arguments, cudaStream_t stream) {
    with_experts_per_lane(arguments.shape.num_experts, [&](auto per_lane) {
        launch(choice_kernel<decltype(per_lane)::value, Logit>, arguments.shape.strips(), kStripThreads,
               ChoiceMemory::bytes(arguments.shape.num_experts), stream, arguments);
    });
}

}  // namespace mnmt_moe
