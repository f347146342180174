#include "top2_gate.h"

#include <torch/headeronly/util/BFloat16.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace mnmt_moe {
namespace {

using torch::headeronly::BFloat16;

constexpr int32_t kNone = -1;

// Chosen on the logits, not on the gates: the softmax is monotone, but rounding it can make ties.
template <typename Logit>
std::pair<int32_t, int32_t> two_largest(const Logit* row, int64_t size) {
    int32_t first = row[1] > row[0] ? 1 : 0;
    int32_t second = 1 - first;
    for (int32_t index = 2; index < size; ++index) {
        if (row[index] > row[first]) {
            second = std::exchange(first, index);
        } else if (row[index] > row[second]) {
            second = index;
        }
    }
    return {first, second};
}

template <typename Logit, typename Gate>
void softmax(const Logit* row, int64_t size, Gate largest, Gate* out) {
    Gate sum = 0;
    for (int64_t index = 0; index < size; ++index) {
        out[index] = std::exp(static_cast<Gate>(row[index]) - largest);
        sum += out[index];
    }
    for (int64_t index = 0; index < size; ++index) {
        out[index] /= sum;
    }
}

// The first choice's gate, the second's, and what both are divided by.
template <typename Gate>
struct ChosenGates {
    Gate first;
    Gate second;
    Gate sum;
};

template <typename Gate>
ChosenGates<Gate> chosen_gates(const Gate* gates, const int32_t* choices, bool count_first,
                               bool count_second) {
    const Gate first = gates[choices[0]];
    const Gate second = gates[choices[1]];
    const Gate sum = (count_first ? first : 0) + (count_second ? second : 0);
    return {first, second, sum + static_cast<Gate>(kRenormaliseEpsilon)};
}

template <typename Gate>
bool keeps_second(const GroupRouting<Gate>& group, int64_t token, GroupShape shape,
                  const GateOptions& options) {
    if (group.draws == nullptr) {
        return true;
    }
    const auto chosen =
        chosen_gates(group.gates + token * shape.num_experts, group.choices + 2 * token, true, true);
    const Gate weight = options.renormalise_after ? chosen.second : chosen.second / chosen.sum;
    return group.draws[token] < weight / static_cast<Gate>(options.threshold);
}

template <typename Gate>
void apply_second_expert_policy(const GroupRouting<Gate>& group, GroupShape shape,
                                const GateOptions& options) {
    for (int64_t token = 0; token < shape.tokens; ++token) {
        const int32_t* choices = group.choices + 2 * token;
        int32_t* experts = group.experts + 2 * token;
        experts[0] = choices[0];
        const bool kept = choices[1] != kNone && keeps_second(group, token, shape, options);
        experts[1] = kept ? choices[1] : kNone;
    }
}

// Hands out the slots of one rank of choices (0 = first, 1 = second) in token order. `used` counts the
// claims on each expert, also the ones that came too late.
template <typename Gate>
void assign_slots(const GroupRouting<Gate>& group, int64_t tokens, int64_t capacity, int rank,
                  std::vector<int64_t>& used) {
    for (int64_t token = 0; token < tokens; ++token) {
        const int32_t expert = group.experts[2 * token + rank];
        int32_t slot = kNone;
        if (expert != kNone) {
            const int64_t position = used[expert]++;
            slot = position < capacity ? static_cast<int32_t>(position) : kNone;
        }
        group.slots[2 * token + rank] = slot;
    }
}

template <typename Gate>
void weigh(const GroupRouting<Gate>& group, GroupShape shape, bool renormalise_after) {
    for (int64_t token = 0; token < shape.tokens; ++token) {
        const int32_t* choices = group.choices + 2 * token;
        Gate* weights = group.weights + 2 * token;
        weights[0] = weights[1] = 0;
        if (choices[0] == kNone) {
            continue;
        }
        const bool first_kept = group.slots[2 * token] != kNone;
        const bool second_kept = group.slots[2 * token + 1] != kNone;
        const auto chosen = chosen_gates(group.gates + token * shape.num_experts, choices,
                                         first_kept || !renormalise_after, second_kept || !renormalise_after);
        weights[0] = first_kept ? chosen.first / chosen.sum : 0;
        weights[1] = second_kept ? chosen.second / chosen.sum : 0;
    }
}

// Adds the gradient of the two weights to that of the token's gates. With w_i = k_i g_i / D, k_i = 1 for a
// kept choice, and D = d_1 g_1 + d_2 g_2 + epsilon: dL/dg_i = (k_i u_i - d_i (k_1 u_1 g_1 + k_2 u_2 g_2) / D)
// / D.
template <typename Gate>
void add_weight_gradient(const TokenGradient<Gate>& token, bool renormalise_after, Gate* grad_gates) {
    const bool kept[2] = {token.slots[0] != kNone, token.slots[1] != kNone};
    const bool counted[2] = {kept[0] || !renormalise_after, kept[1] || !renormalise_after};
    const auto chosen = chosen_gates(token.gates, token.choices, counted[0], counted[1]);
    const Gate grad_first = kept[0] ? token.grad_weights[0] : 0;
    const Gate grad_second = kept[1] ? token.grad_weights[1] : 0;
    const Gate shared = (grad_first * chosen.first + grad_second * chosen.second) / chosen.sum;
    grad_gates[token.choices[0]] += (grad_first - (counted[0] ? shared : 0)) / chosen.sum;
    grad_gates[token.choices[1]] += (grad_second - (counted[1] ? shared : 0)) / chosen.sum;
}

template <typename Gate>
void softmax_backward(const Gate* gates, int64_t size, Gate* grad) {
    Gate dot = 0;
    for (int64_t index = 0; index < size; ++index) {
        dot += gates[index] * grad[index];
    }
    for (int64_t index = 0; index < size; ++index) {
        grad[index] = gates[index] * (grad[index] - dot);
    }
}

}  // namespace

template <typename Logit, typename Gate>
void select_top2(const Logit* logits, const bool* padding, int64_t num_experts, int64_t begin, int64_t end,
                 Gate* gates, int32_t* choices) {
    for (int64_t token = begin; token < end; ++token) {
        const Logit* row = logits + token * num_experts;
        Gate* out = gates + token * num_experts;
        if (padding[token]) {
            std::fill(out, out + num_experts, Gate(0));
            choices[2 * token] = choices[2 * token + 1] = kNone;
            continue;
        }
        const auto [first, second] = two_largest(row, num_experts);
        choices[2 * token] = first;
        choices[2 * token + 1] = second;
        softmax(row, num_experts, static_cast<Gate>(row[first]), out);
    }
}

template <typename Gate>
void route_group(const GroupRouting<Gate>& group, GroupShape shape, const GateOptions& options) {
    std::vector<int64_t> used(shape.num_experts, 0);
    apply_second_expert_policy(group, shape, options);
    assign_slots(group, shape.tokens, options.capacity, 0, used);
    for (int64_t& count : used) {
        count = std::min(count, options.capacity);
    }
    assign_slots(group, shape.tokens, options.capacity, 1, used);
    weigh(group, shape, options.renormalise_after);
}

template <typename Gate>
bool first_choice_load(const int32_t* choices, GroupShape shape, Gate* load) {
    std::vector<int64_t> counts(shape.num_experts, 0);
    int64_t real_tokens = 0;
    for (int64_t token = 0; token < shape.tokens; ++token) {
        if (choices[2 * token] != kNone) {
            ++counts[choices[2 * token]];
            ++real_tokens;
        }
    }
    const double scale = real_tokens == 0 ? 0 : 1 / (static_cast<double>(real_tokens) * real_tokens);
    for (int64_t expert = 0; expert < shape.num_experts; ++expert) {
        load[expert] = static_cast<Gate>(counts[expert] * scale);
    }
    return real_tokens != 0;
}

template <typename Gate>
double group_balance(const Gate* gates, const Gate* load, GroupShape shape) {
    std::vector<double> gate_sums(shape.num_experts, 0);
    for (int64_t token = 0; token < shape.tokens; ++token) {
        for (int64_t expert = 0; expert < shape.num_experts; ++expert) {
            gate_sums[expert] += gates[token * shape.num_experts + expert];
        }
    }
    double balance = 0;
    for (int64_t expert = 0; expert < shape.num_experts; ++expert) {
        balance += gate_sums[expert] * load[expert];
    }
    return balance;
}

template <typename Gate>
void token_backward(const TokenGradient<Gate>& token, int64_t num_experts, bool renormalise_after) {
    if (token.choices[0] == kNone) {
        std::fill(token.grad_logits, token.grad_logits + num_experts, Gate(0));
        return;
    }
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        token.grad_logits[expert] = token.grad_balance * token.load[expert];
    }
    add_weight_gradient(token, renormalise_after, token.grad_logits);
    softmax_backward(token.gates, num_experts, token.grad_logits);
}

#define MNMT_MOE_INSTANTIATE_SELECT(Logit, Gate) \
    template void select_top2(const Logit*, const bool*, int64_t, int64_t, int64_t, Gate*, int32_t*)

MNMT_MOE_INSTANTIATE_SELECT(float, float);
MNMT_MOE_INSTANTIATE_SELECT(BFloat16, float);
MNMT_MOE_INSTANTIATE_SELECT(double, double);

#define MNMT_MOE_INSTANTIATE_GATE(Gate)                                                   \
    template void route_group(const GroupRouting<Gate>&, GroupShape, const GateOptions&); \
    template bool first_choice_load(const int32_t*, GroupShape, Gate*);                   \
    template double group_balance(const Gate*, const Gate*, GroupShape);                  \
    template void token_backward(const TokenGradient<Gate>&, int64_t, bool)

MNMT_MOE_INSTANTIATE_GATE(float);
MNMT_MOE_INSTANTIATE_GATE(double);

}  // namespace mnmt_moe
