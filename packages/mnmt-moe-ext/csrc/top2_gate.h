// The top-2 gate of GShard (Lepikhin et al. 2021, algorithm 1) on plain arrays, one range of tokens or one
// group at a time, so that the caller decides what runs in parallel. Arrays are contiguous and row-major.
//
// Logit is the type of the logits, Gate the type everything is computed in: float, or double for double
// logits.
#pragma once

#include <cstdint>

namespace mnmt_moe {

// Added to the sum of the two gates before dividing by it.
inline constexpr double kRenormaliseEpsilon = 1e-9;

struct GateOptions {
    int64_t capacity;        // slots of each expert in each group
    double threshold;        // a second choice of this weight or more is always kept
    bool renormalise_after;  // divide by the sum over the kept choices, not over both
};

// One group of `tokens` tokens over `num_experts` experts.
struct GroupShape {
    int64_t tokens;
    int64_t num_experts;
};

template <typename Gate>
struct GroupRouting {
    const Gate* gates;       // (tokens, num_experts)
    const int32_t* choices;  // (tokens, 2), -1 for padding
    const float* draws;      // (tokens), uniform in [0, 1); null keeps every second choice
    int32_t* experts;        // (tokens, 2), -1 for none
    int32_t* slots;          // (tokens, 2), -1 for none and for dropped
    Gate* weights;           // (tokens, 2), 0 for none and for dropped
};

// What the backward pass of one token reads, and the gradient it writes.
template <typename Gate>
struct TokenGradient {
    const Gate* gates;         // (num_experts)
    const int32_t* choices;    // (2)
    const int32_t* slots;      // (2)
    const Gate* grad_weights;  // (2)
    const Gate* load;          // (num_experts), the group's first_choice_load
    Gate grad_balance;         // of the sum over groups of group_balance
    Gate* grad_logits;         // (num_experts)
};

// Softmax of the rows [begin, end) and their two largest logits, the lower index first where logits tie.
// Padding gets zero gates and the choices -1.
template <typename Logit, typename Gate>
void select_top2(const Logit* logits, const bool* padding, int64_t num_experts, int64_t begin, int64_t end,
                 Gate* gates, int32_t* choices);

// Gives the group's choices their slots and weights: every first choice before any second choice.
template <typename Gate>
void route_group(const GroupRouting<Gate>& group, GroupShape shape, const GateOptions& options);

// f_e / n for each expert: f_e is the share of the group's n real tokens whose first choice is e.
// Returns false, with all loads 0, for a group of padding only.
template <typename Gate>
bool first_choice_load(const int32_t* choices, GroupShape shape, Gate* load);

// Sum over experts of f_e m_e, m_e being the mean gate over the group's real tokens.
template <typename Gate>
double group_balance(const Gate* gates, const Gate* load, GroupShape shape);

template <typename Gate>
void token_backward(const TokenGradient<Gate>& token, int64_t num_experts, bool renormalise_after);

}  // namespace mnmt_moe
