// The weights of a token's choices, from their gates g, and the gradient.
//
// w_i = s_i g_i / D with D = sum_j d_j g_j + epsilon, where s_i is 1 for a choice with a slot, else 0. d_j is
// 1 with renormalise "before" and s_j with "after"; with "never" D is 1.
#pragma once

#include <cstdint>

#include "../options.h"

namespace mnmt_moe {

// Replaces the gates (k) by the weights.
template <typename T>
void weigh(const int32_t* slots, int64_t top_k, Renormalise renormalise, T* gates) {
    T sum = 0;
    for (int64_t rank = 0; rank < top_k; ++rank) {
        const bool has_slot = slots[rank] != kNone;
        sum += has_slot || renormalise == Renormalise::before ? gates[rank] : 0;
        gates[rank] = has_slot ? gates[rank] : 0;
    }
    sum += static_cast<T>(kRenormaliseEpsilon);
    for (int64_t rank = 0; rank < top_k && renormalise != Renormalise::never; ++rank) {
        gates[rank] /= sum;
    }
}

// From the gradient u of the weights, or null for 0, writes that of the gates:
// dL/dg_i = (s_i u_i - d_i sum_j (s_j u_j g_j) / D) / D.
template <typename T>
void weigh_backward(const T* gates, const int32_t* slots, int64_t top_k, Renormalise renormalise,
                    const T* grad_weights, T* grad) {
    T sum = static_cast<T>(kRenormaliseEpsilon), products = 0;
    for (int64_t rank = 0; rank < top_k; ++rank) {
        const bool has_slot = slots[rank] != kNone;
        sum += has_slot || renormalise == Renormalise::before ? gates[rank] : 0;
        grad[rank] = has_slot && grad_weights != nullptr ? grad_weights[rank] : 0;
        products += grad[rank] * gates[rank];
    }
    for (int64_t rank = 0; rank < top_k && renormalise != Renormalise::never; ++rank) {
        const bool in_sum = slots[rank] != kNone || renormalise == Renormalise::before;
        grad[rank] = (grad[rank] - (in_sum ? products / sum : 0)) / sum;
    }
}

}  // namespace mnmt_moe
