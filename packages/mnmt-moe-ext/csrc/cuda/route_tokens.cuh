// First kernel of the gate: everything of a token that depends on no other, and what each strip adds up to.
#pragma once

#include "choices.cuh"
#include "claims.cuh"
#include "second_expert.cuh"

namespace mnmt_moe {

struct TokenArguments {
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
    int32_t* real;     // (groups, strips): tokens that are not padding; at first 0
};

// Warps of a block; half as many where there are more experts than that, so that the sums of their gates fit
// into the shared memory of every GPU.
constexpr int kTokenWarps = 8;
constexpr int kExpertsOfAllWarps = 2048;

// A forced choice that no expert has would be read out of bounds: it counts as padding.
__device__ inline bool is_real(const TokenArguments& arguments, int64_t token) {
    const int top_k = arguments.shape.top_k;
    bool real = !arguments.padding[token];
    for (int rank = 0; arguments.forced != nullptr && rank < top_k; ++rank) {
        real &= index_below(arguments.forced[top_k * token + rank], arguments.shape.num_experts) != kNone;
    }
    return real;
}

__device__ inline void write_padding(const TokenArguments& arguments, int64_t token) {
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

// Whether a token keeps its second choice. The whole warp calls.
__device__ inline bool keep_second(const TokenArguments& arguments, int64_t token, const Logits& logits,
                                   float largest, int32_t choice) {
    if (arguments.draws.token_ids == nullptr) {
        return true;
    }
    const int first = __shfl_sync(kAllLanes, choice, 0);
    const int second = __shfl_sync(kAllLanes, choice, 1);
    const double limit = arguments.draws.of(token) * arguments.threshold;
    return arguments.renormalise == Renormalise::before ? exceeds_of_two(logits, first, second, limit)
                                                        : exceeds_of_all(logits, second, largest, limit);
}

// Lane r writes the choice of rank r.
__device__ inline void write_choice(const TokenArguments& arguments, int64_t token, int32_t choice,
                                    float gate, bool second_kept) {
    const int rank = lane_index();
    const int64_t index = arguments.shape.top_k * token + rank;
    const int32_t expert = rank != 1 || second_kept ? choice : kNone;
    arguments.choices[index] = choice;
    arguments.experts[index] = expert;
    arguments.gates[index] = gate;
    if (expert != kNone) {
        atomicAdd(arguments.claims + claim_index(arguments.shape, rank, expert), 1);
    }
}

// Adds the token's gates to `gate_sums` (experts). The whole warp calls.
__device__ inline void route_token(const TokenArguments& arguments, int64_t token, float* gate_sums) {
    const GateShape& shape = arguments.shape;
    const Logits logits{arguments.logits + token * shape.num_experts, shape.num_experts};
    const bool has_choice = lane_index() < shape.top_k;
    int32_t choice = kNone;
    if (arguments.forced == nullptr) {
        choice = choose_largest(logits, arguments.bias, shape.top_k);
    } else if (has_choice) {
        choice = arguments.forced[shape.top_k * token + lane_index()];
    }
    const float largest = logits.largest();
    const bool second_kept = keep_second(arguments, token, logits, largest, choice);
    // Logits that are all -infinity sum up to 0, whose logarithm is -infinity; shifted they would be NaN.
    const float shift = largest == -INFINITY ? 0 : largest;
    const float sum = logits.sum_of_exp(shift), scale = 1 / sum;
    logits.each([&](int expert, float logit) { gate_sums[expert] += expf(logit - shift) * scale; });
    if (has_choice) {
        write_choice(arguments, token, choice, expf(logits.values[choice] - shift) / sum, second_kept);
    }
    if (lane_index() == 0) {
        arguments.log_sums[token] = shift + logf(sum);
    }
}

// Writes the sums of the strip's gates, from those of each warp. The whole block calls.
template <int kWarps>
__device__ void write_gate_sums(const TokenArguments& arguments, const float* of_warps) {
    const int num_experts = arguments.shape.num_experts;
    const int64_t strips = arguments.shape.strips_per_group();
    const int64_t first = block_index() / strips * num_experts * strips + block_index() % strips;
    for (int expert = thread_index(); expert < num_experts; expert += kWarps * kWarpSize) {
        float sum = 0;
        for (int warp = 0; warp < kWarps; ++warp) {
            sum += of_warps[warp * num_experts + expert];
        }
        arguments.gate_sums[first + expert * strips] = sum;
    }
}

// A block takes a strip, a warp one token after the other.
template <int kWarps>
__global__ void __launch_bounds__(kWarps* kWarpSize) token_kernel(TokenArguments arguments) {
    const Strip strip = Strip::of_block(arguments.shape);
    const int num_experts = arguments.shape.num_experts;
    auto* const gate_sums = dynamic_shared<float>();  // (warps, experts)
    float* const of_warp = gate_sums + warp_index() * num_experts;
    for (int expert = lane_index(); expert < num_experts; expert += kWarpSize) {
        of_warp[expert] = 0;
    }
    for (int64_t index = strip.begin + warp_index(); index < strip.end; index += kWarps) {
        const int64_t token = strip.group * arguments.shape.tokens + index;
        if (!is_real(arguments, token)) {
            write_padding(arguments, token);
            continue;
        }
        route_token(arguments, token, of_warp);
        if (lane_index() == 0) {
            atomicAdd(arguments.real + block_index(), 1);
        }
    }
    __syncthreads();
    write_gate_sums<kWarps>(arguments, gate_sums);
}

template <int kWarps>
void launch_tokens_of(const TokenArguments& arguments, cudaStream_t stream) {
    const GateShape& shape = arguments.shape;
    launch(token_kernel<kWarps>, shape.strips(), kWarps * kWarpSize,
           sizeof(float) * kWarps * shape.num_experts, stream, arguments);
}

inline void launch_tokens(const TokenArguments& arguments, cudaStream_t stream) {
    if (arguments.shape.num_experts > kExpertsOfAllWarps) {
        launch_tokens_of<kTokenWarps / 2>(arguments, stream);
    } else {
        launch_tokens_of<kTokenWarps>(arguments, stream);
    }
}

}  // namespace mnmt_moe
