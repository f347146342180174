// Gradient of the gate: counts of first choices, then one pass over the logits, a warp a token.
#pragma once

#include "gate_slots.cuh"

namespace mnmt_moe {

template <typename Logit>
struct GateGradient {
    const float* grad_weights;  // (groups, tokens, 2)
    const float* grad_loss;     // ()
    const Logit* logits;        // (groups, tokens, experts)
    const int32_t* choices;     // (groups, tokens, 2)
    const int32_t* slots;       // (groups, tokens, 2)
    const float* log_sums;      // (groups, tokens)
    bool renormalise_after;
    GateShape shape;
    int32_t* counts;     // (groups, experts + 1): tokens by their first choice, and all that have one
    Logit* grad_logits;  // (groups, tokens, experts)
};

// Padding has none.
template <typename Logit>
__device__ bool has_choices(const GateGradient<Logit>& gradient, int64_t token) {
    const int num_experts = gradient.shape.num_experts;
    return index_below(gradient.choices[2 * token], num_experts) != kNone &&
           index_below(gradient.choices[2 * token + 1], num_experts) != kNone;
}

// Integers are added in any order to the same sum. The whole warp calls.
__device__ inline void add_up_equals(int32_t* counts, int32_t index) {
    const unsigned equals = __match_any_sync(kAllLanes, index);
    if (index != kNone && lane_index() == __ffs(equals) - 1) {
        atomicAdd(counts + index, __popc(equals));
    }
}

template <typename Logit>
__global__ void __launch_bounds__(kStripTokens) count_kernel(GateGradient<Logit> gradient) {
    const Strip strip = Strip::of_block(gradient.shape);
    const int num_experts = gradient.shape.num_experts;
    const int64_t index = strip.begin + threadIdx.x;
    const int64_t token = strip.group * gradient.shape.tokens + index;
    const int32_t expert =
        index < strip.end && has_choices(gradient, token) ? gradient.choices[2 * token] : kNone;
    int32_t* counts = gradient.counts + strip.group * (num_experts + 1);
    add_up_equals(counts, expert);
    add_up_equals(counts, expert == kNone ? kNone : num_experts);
}

// d loss / d gate of each expert, the same for all of the group's real tokens. The whole block calls.
template <typename Logit>
__device__ void write_loss_gradient(const GateGradient<Logit>& gradient, int64_t group, float* shared) {
    const int num_experts = gradient.shape.num_experts;
    const auto real = [&](int64_t of) { return gradient.counts[of * (num_experts + 1) + num_experts]; };
    int occupied = 0;
    for (int64_t start = 0; start < gradient.shape.groups; start += kStripThreads) {
        const int64_t other = start + threadIdx.x;
        occupied += __syncthreads_count(other < gradient.shape.groups && real(other) > 0);
    }
    const double tokens = real(group);
    const double scale = tokens == 0 ? 0 : num_experts / (tokens * tokens * occupied);
    for (int expert = threadIdx.x; expert < num_experts; expert += kStripThreads) {
        const double share = scale * gradient.counts[group * (num_experts + 1) + expert];
        shared[expert] = static_cast<float>(share * *gradient.grad_loss);
    }
    __syncthreads();
}

// Of one token's two choices.
struct ChoiceGradient {
    int experts[2];
    float gates[2];
    float grads[2];  // d / d gate of what the weights lead to
};

// With w_i = k_i g_i / D, k_i = 1 for a kept choice, and D = d_1 g_1 + d_2 g_2 + epsilon:
// dL/dg_i = (k_i u_i - d_i (k_1 u_1 g_1 + k_2 u_2 g_2) / D) / D.
template <typename Logit>
__device__ ChoiceGradient choice_gradient(const GateGradient<Logit>& gradient, int64_t token) {
    ChoiceGradient choices;
    bool in_sum[2];
    float sum = kRenormaliseEpsilon;
    float shared = 0;
    for (int rank = 0; rank < 2; ++rank) {
        const int expert = gradient.choices[2 * token + rank];
        const bool has_slot = gradient.slots[2 * token + rank] != kNone;
        const float logit = to_float(gradient.logits[token * gradient.shape.num_experts + expert]);
        in_sum[rank] = has_slot || !gradient.renormalise_after;
        choices.experts[rank] = expert;
        choices.gates[rank] = expf(logit - gradient.log_sums[token]);
        choices.grads[rank] = has_slot ? gradient.grad_weights[2 * token + rank] : 0;
        sum += in_sum[rank] ? choices.gates[rank] : 0;
        shared += choices.grads[rank] * choices.gates[rank];
    }
    for (int rank = 0; rank < 2; ++rank) {
        choices.grads[rank] = (choices.grads[rank] - (in_sum[rank] ? shared / sum : 0)) / sum;
    }
    return choices;
}

// Through the softmax: dL/dl_i = g_i (G_i - sum_j g_j G_j).
template <int kPerLane, typename Logit>
__device__ void write_gradient(const GateGradient<Logit>& gradient, int64_t token,
                               const float* loss_gradient) {
    const int num_experts = gradient.shape.num_experts;
    const float log_sum = gradient.log_sums[token];
    Row<kPerLane> row;
    row.load(gradient.logits + token * num_experts, num_experts);
    float dot = 0;
    row.each(num_experts, [&](int expert, float& value) {
        value = expf(value - log_sum);
        dot += value * loss_gradient[expert];
    });
    const ChoiceGradient choices = choice_gradient(gradient, token);
    dot = warp_sum(dot) + choices.gates[0] * choices.grads[0] + choices.gates[1] * choices.grads[1];
    Logit* out = gradient.grad_logits + token * num_experts;
    row.each(num_experts, [&](int expert, float value) {
        float grad = loss_gradient[expert] - dot;
        grad += expert == choices.experts[0] ? choices.grads[0] : 0;
        grad += expert == choices.experts[1] ? choices.grads[1] : 0;
        out[expert] = from_float<Logit>(value * grad);
    });
}

template <int kPerLane, typename Logit>
__global__ void __launch_bounds__(kStripThreads) gate_backward_kernel(GateGradient<Logit> gradient) {
    const int num_experts = gradient.shape.num_experts;
    const Strip strip = Strip::of_block(gradient.shape);
    float* loss_gradient = dynamic_shared<float>();
    write_loss_gradient(gradient, strip.group, loss_gradient);
    for (int64_t index = strip.begin + warp_index(); index < strip.end; index += kStripWarps) {
        const int64_t token = strip.group * gradient.shape.tokens + index;
        if (has_choices(gradient, token)) {
            write_gradient<kPerLane>(gradient, token, loss_gradient);
        } else {
            Row<kPerLane>().each(num_experts, [&](int expert, float) {
                gradient.grad_logits[token * num_experts + expert] = from_float<Logit>(0);
            });
        }
    }
}

inline size_t counts_bytes(const GateShape& shape) {
    return sizeof(int32_t) * shape.groups * (shape.num_experts + 1);
}

template <typename Logit>
void launch_gate_backward(const GateGradient<Logit>& gradient, cudaStream_t stream) {
    const GateShape& shape = gradient.shape;
    clear(gradient.counts, counts_bytes(shape), stream);
    launch(count_kernel<Logit>, shape.strips(), kStripTokens, 0, stream, gradient);
    with_experts_per_lane(shape.num_experts, [&](auto per_lane) {
        launch(gate_backward_kernel<decltype(per_lane)::value, Logit>, shape.strips(), kStripThreads,
               sizeof(float) * shape.num_experts, stream, gradient);
    });
}

}  // namespace mnmt_moe
