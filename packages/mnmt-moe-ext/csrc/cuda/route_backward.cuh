// Gradient of the gate, a warp a token, from the slots, sums and counts of the forward pass.
#pragma once

#include "gates.cuh"
#include "strips.cuh"

namespace mnmt_moe {

constexpr int kGradientWarps = 8;

struct GateGradient {
    const float* grad_weights;     // (groups, tokens, top_k), or null for 0
    const float* grad_gate_means;  // (groups, experts), or null for 0
    const float* grad_log_sums;    // (groups, tokens), or null for 0
    const float* logits;           // (groups, tokens, experts)
    const int32_t* choices;        // (groups, tokens, top_k)
    const int32_t* slots;          // (groups, tokens, top_k)
    const float* log_sums;         // (groups, tokens)
    const int32_t* real_tokens;    // (groups)
    Renormalise renormalise;
    GateShape shape;
    float* grad_logits;  // (groups, tokens, experts)
};

// Of the choice that this lane has: lane r that of rank r, the others none.
struct ChoiceGradient {
    int32_t expert;
    float gate;
    float grad;  // d / d gate of what the weights lead to
};

// With w_r = k_r g_r / D, k_r = 1 for a choice that has a slot, and D = sum_r d_r g_r + epsilon:
// dL/dg_r = (k_r u_r - d_r sum_j k_j u_j g_j / D) / D. Without renormalising it is k_r u_r. The whole warp
// calls.
__device__ inline ChoiceGradient choice_gradient(const GateGradient& gradient, int64_t token,
                                                 int32_t expert) {
    const int64_t choice = gradient.shape.top_k * token + lane_index();
    const bool has_slot = expert != kNone && gradient.slots[choice] != kNone;
    const bool in_sum = expert != kNone && (has_slot || gradient.renormalise == Renormalise::before);
    float gate = 0;
    if (expert != kNone) {
        const float logit = gradient.logits[token * gradient.shape.num_experts + expert];
        gate = expf(logit - gradient.log_sums[token]);
    }
    const float grad = has_slot && gradient.grad_weights != nullptr ? gradient.grad_weights[choice] : 0;
    if (gradient.renormalise == Renormalise::never) {
        return {expert, gate, grad};
    }
    const float sum = warp_sum(in_sum ? gate : 0) + static_cast<float>(kRenormaliseEpsilon);
    const float shared = warp_sum(grad * gate) / sum;
    return {expert, gate, (grad - (in_sum ? shared : 0)) / sum};
}

// d / d gate of what the gate means lead to: the same for all real tokens of a group.
struct MeanGradient {
    const float* grads;  // (experts), or null for 0
    float scale;

    __device__ MeanGradient(const GateGradient& gradient, int64_t group)
        : grads(gradient.grad_gate_means), scale(1.0f / static_cast<float>(gradient.real_tokens[group])) {
        grads = grads == nullptr ? nullptr : grads + group * gradient.shape.num_experts;
    }

    __device__ float of(int expert) const { return grads == nullptr ? 0 : grads[expert] * scale; }
};

// Through the softmax: dL/dz_i = g_i (G_i - sum_j g_j G_j + grad of the logarithm of the sum). Each lane
// first writes its experts without what the weights lead to, then lane r that of rank r anew.
__device__ inline void write_gradient(const GateGradient& gradient, int64_t token, int32_t choice) {
    const int num_experts = gradient.shape.num_experts;
    const MeanGradient means(gradient, token / gradient.shape.tokens);
    const Logits logits{gradient.logits + token * num_experts, num_experts};
    const float log_sum = gradient.log_sums[token];
    float dot = 0;
    logits.each([&](int expert, float logit) { dot += expf(logit - log_sum) * means.of(expert); });
    const ChoiceGradient mine = choice_gradient(gradient, token, choice);
    dot = warp_sum(dot + mine.gate * mine.grad);
    const float shift = (gradient.grad_log_sums == nullptr ? 0 : gradient.grad_log_sums[token]) - dot;
    float* out = gradient.grad_logits + token * num_experts;
    logits.each(
        [&](int expert, float logit) { out[expert] = expf(logit - log_sum) * (means.of(expert) + shift); });
    __syncwarp();
    if (mine.expert != kNone) {
        out[mine.expert] = mine.gate * (means.of(mine.expert) + shift + mine.grad);
    }
}

__global__ void __launch_bounds__(kGradientWarps* kWarpSize) gate_backward_kernel(GateGradient gradient) {
    const GateShape& shape = gradient.shape;
    const int64_t token = block_index() * kGradientWarps + warp_index();
    if (token >= shape.all_tokens()) {
        return;
    }
    const bool has_choice = lane_index() < shape.top_k;
    const int32_t choice =
        has_choice ? index_below(gradient.choices[shape.top_k * token + lane_index()], shape.num_experts)
                   : kNone;
    if (__ballot_sync(kAllLanes, has_choice && choice == kNone) == 0) {
        write_gradient(gradient, token, choice);
        return;
    }
    for (int expert = lane_index(); expert < shape.num_experts; expert += kWarpSize) {
        gradient.grad_logits[token * shape.num_experts + expert] = 0;
    }
}

inline void launch_gate_backward(const GateGradient& gradient, cudaStream_t stream) {
    launch(gate_backward_kernel, ceil_div<int64_t>(gradient.shape.all_tokens(), kGradientWarps),
           kGradientWarps * kWarpSize, 0, stream, gradient);
}

}  // namespace mnmt_moe
