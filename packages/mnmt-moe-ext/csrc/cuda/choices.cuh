// First kernel of the gate: softmax and choices, a warp a token, and what each strip of tokens adds up to.
#pragma once

#include "claims.cuh"
#include "second_expert.cuh"
#include "top_k.cuh"

namespace mnmt_moe {

struct ChoiceArguments {
    const float* logits;    // (groups, tokens, experts)
    const bool* padding;    // (groups, tokens)
    const float* bias;      // (experts), or null
    const int32_t* forced;  // (groups, tokens, top_k), or null
    Draws draws;
    double threshold;
    Renormalise renormalise;
    GateShape shape;
    int32_t* choices;  // (groups, tokens, top_k)
    int32_t* experts;  // (groups, tokens, top_k): the choices that are kept
    float* gates;      // (groups, tokens, top_k): of the choices
    float* log_sums;   // (groups, tokens)
    int32_t* claims;   // at first 0
    float* gate_sums;  // (groups, experts, strips)
    int32_t* real;     // (groups, strips): tokens that are not padding
};

// Warps of a block; half as many where there are more experts than that, so that the sums of their gates fit
// into the shared memory of every GPU.
constexpr int kChoiceWarps = 8;
constexpr int kExpertsOfAllWarps = 2048;

// The shared memory of a block.
template <int kWarps>
struct ChoiceMemory {
    float* gate_sums;  // (warps, experts)
    bool* real;        // (strip tokens)

    __device__ explicit ChoiceMemory(const GateShape& shape)
        : gate_sums(dynamic_shared<float>()),
          real(reinterpret_cast<bool*>(gate_sums + kWarps * shape.num_experts)) {}

    static size_t bytes(const GateShape& shape) {
        return sizeof(float) * kWarps * shape.num_experts + kLongestStrip;
    }

    __device__ void clear_sums(const GateShape& shape) const {
        for (int index = threadIdx.x; index < kWarps * shape.num_experts; index += kWarps * kWarpSize) {
            gate_sums[index] = 0;
        }
    }
};

// A forced choice that no expert has would be read out of bounds: it counts as padding.
__device__ inline bool is_real(const ChoiceArguments& arguments, int64_t token) {
    const int top_k = arguments.shape.top_k;
    bool real = !arguments.padding[token];
    for (int rank = 0; arguments.forced != nullptr && rank < top_k; ++rank) {
        real &= index_below(arguments.forced[top_k * token + rank], arguments.shape.num_experts) != kNone;
    }
    return real;
}

// The largest of the logits that a warp has looked at, and this lane's share of the sum of exp(logit -
// largest) (Milakov and Gimelshein 2018, online normalizer calculation for softmax).
struct Softmax {
    float largest = -INFINITY;
    float sum = 0;

    // Looks at a row too, and replaces its logits by exp(logit - largest). The whole warp calls.
    template <int kPerLane>
    __device__ void add(Row<kPerLane>& row) {
        const float before = largest;
        largest = fmaxf(before, row.warp_max());
        const float shift = largest == -INFINITY ? 0 : largest;
        sum = sum * (before == largest ? 1 : expf(before - shift)) + row.exponentiate(shift);
    }
};

// Adds the scores of a row to the best; the row is that of the logits, before and after.
template <int kPerLane>
__device__ void add_scores(const ChoiceArguments& arguments, const float* logits, int first,
                           Row<kPerLane>& row, TopK& best) {
    const int count = arguments.shape.num_experts - first;
    if (arguments.bias != nullptr) {
        const float* bias = arguments.bias + first;
        row.each(count, [&](int expert, float& value) { value = fmaxf(value + bias[expert], -INFINITY); });
    }
    best.add(row, first, arguments.shape.top_k);
    if (arguments.bias != nullptr) {
        row.load(logits + first, count);
    }
}

// Whether a token keeps its second choice. The whole warp calls.
__device__ inline bool keep_second(const ChoiceArguments& arguments, int64_t token, float largest,
                                   int32_t choice) {
    if (arguments.draws.token_ids == nullptr) {
        return true;
    }
    const int first = __shfl_sync(kAllLanes, choice, 0);
    const int second = __shfl_sync(kAllLanes, choice, 1);
    const int num_experts = arguments.shape.num_experts;
    const TokenLogits logits{arguments.logits + token * num_experts, num_experts};
    const double limit = arguments.draws.of(token) * arguments.threshold;
    return arguments.renormalise == Renormalise::before ? exceeds_of_two(logits, first, second, limit)
                                                        : exceeds_of_all(logits, second, largest, limit);
}

__device__ inline void write_padding(const ChoiceArguments& arguments, int64_t token) {
    const int64_t choice = arguments.shape.top_k * token + lane_index();
    if (lane_index() < arguments.shape.top_k) {
        arguments.choices[choice] = kNone;
        arguments.experts[choice] = kNone;
        arguments.gates[choice] = 0;
    }
    if (lane_index() == 0) {
        arguments.log_sums[token] = 0;
    }
}

// Lane r writes the choice of rank r.
__device__ inline void write_choice(const ChoiceArguments& arguments, int64_t token, float largest, float sum,
                                    int32_t choice) {
    const int rank = lane_index();
    const bool second_kept = keep_second(arguments, token, largest, choice);
    const int32_t expert = rank != 1 || second_kept ? choice : kNone;
    const int num_experts = arguments.shape.num_experts;
    if (rank == 0) {
        arguments.log_sums[token] = largest + logf(sum);
    }
    if (rank < arguments.shape.top_k) {
        const int64_t index = arguments.shape.top_k * token + rank;
        const float logit = arguments.logits[token * num_experts + choice];
        arguments.choices[index] = choice;
        arguments.experts[index] = expert;
        arguments.gates[index] = expf(logit - largest) / sum;
        if (expert != kNone) {
            atomicAdd(arguments.claims + claim_index(arguments.shape, rank, expert), 1);
        }
    }
}

// Writes the sums of the strip's gates; the whole block calls.
template <int kWarps>
__device__ void write_gate_sums(const ChoiceArguments& arguments, const ChoiceMemory<kWarps>& memory) {
    const int num_experts = arguments.shape.num_experts;
    const int64_t strips = arguments.shape.strips_per_group();
    const int64_t first = blockIdx.x / strips * num_experts * strips + blockIdx.x % strips;
    for (int expert = threadIdx.x; expert < num_experts; expert += kWarps * kWarpSize) {
        float sum = 0;
        for (int warp = 0; warp < kWarps; ++warp) {
            sum += memory.gate_sums[warp * num_experts + expert];
        }
        arguments.gate_sums[first + expert * strips] = sum;
    }
}

// Where a row holds all experts it is read once, else again for the gates.
template <int kPerLane, int kWarps>
__device__ void choose_for_token(const ChoiceArguments& arguments, int64_t token,
                                 const ChoiceMemory<kWarps>& memory) {
    const int num_experts = arguments.shape.num_experts;
    const int top_k = arguments.shape.top_k;
    const float* logits = arguments.logits + token * num_experts;
    Row<kPerLane> row;
    Softmax softmax;
    TopK best;
    each_part<kPerLane>(num_experts, [&](int first) {
        row.load(logits + first, num_experts - first);
        if (arguments.forced == nullptr) {
            add_scores(arguments, logits, first, row, best);
        }
        softmax.add(row);
    });
    const float sum = warp_sum(softmax.sum);
    const float scale = 1 / sum;
    each_part<kPerLane>(num_experts, [&](int first) {
        if (num_experts > Row<kPerLane>::kExperts) {
            row.load(logits + first, num_experts - first);
            row.exponentiate(softmax.largest);
        }
        float* gate_sums = memory.gate_sums + warp_index() * num_experts + first;
        row.each(num_experts - first, [&](int expert, float value) { gate_sums[expert] += value * scale; });
    });
    int32_t choice = best.expert(top_k);
    if (arguments.forced != nullptr && lane_index() < top_k) {
        choice = arguments.forced[top_k * token + lane_index()];
    }
    write_choice(arguments, token, softmax.largest, sum, choice);
}

// How many tokens of the strip are not padding, and which. The whole block calls.
template <int kWarps>
__device__ int find_real(const ChoiceArguments& arguments, const Strip& strip,
                         const ChoiceMemory<kWarps>& memory) {
    const int64_t index = strip.begin + threadIdx.x;
    const bool real = index < strip.end && is_real(arguments, strip.group * arguments.shape.tokens + index);
    if (threadIdx.x < kLongestStrip) {
        memory.real[threadIdx.x] = real;
    }
    return __syncthreads_count(real);
}

template <int kPerLane, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarpSize, 24 / kWarps) choice_kernel(ChoiceArguments arguments) {
    const ChoiceMemory<kWarps> memory(arguments.shape);
    const Strip strip = Strip::of_block(arguments.shape);
    memory.clear_sums(arguments.shape);
    const int real = find_real(arguments, strip, memory);
    for (int64_t index = strip.begin + warp_index(); index < strip.end; index += kWarps) {
        const int64_t token = strip.group * arguments.shape.tokens + index;
        if (memory.real[index - strip.begin]) {
            choose_for_token<kPerLane>(arguments, token, memory);
        } else {
            write_padding(arguments, token);
        }
    }
    __syncthreads();
    write_gate_sums(arguments, memory);
    if (threadIdx.x == 0) {
        arguments.real[blockIdx.x] = real;
    }
}

template <int kPerLane, int kWarps>
void launch_choice_of(const ChoiceArguments& arguments, cudaStream_t stream) {
    launch(choice_kernel<kPerLane, kWarps>, arguments.shape.strips(), kWarps * kWarpSize,
           ChoiceMemory<kWarps>::bytes(arguments.shape), stream, arguments);
}

inline void launch_choice(const ChoiceArguments& arguments, cudaStream_t stream) {
    clear(arguments.claims, sizeof(int32_t) * claim_counts(arguments.shape), stream);
    if (arguments.shape.num_experts > kExpertsOfAllWarps) {
        launch_choice_of<kMaxPerLane, kChoiceWarps / 2>(arguments, stream);
        return;
    }
    with_experts_per_lane(arguments.shape.num_experts, [&](auto per_lane) {
        launch_choice_of<decltype(per_lane)::value, kChoiceWarps>(arguments, stream);
    });
}

}  // namespace mnmt_moe
