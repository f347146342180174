// The second of two choices is kept if a draw < p / threshold. With renormalise "before", p is
// g_2 / (g_1 + g_2), else g_2. It is decided in float64 whatever the logits are, and without a division:
// decisions must not hang on rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../options.h"
#include "../philox.h"
#include "gates.h"

namespace mnmt_moe {

// A token's draw depends on these and its id alone.
struct DrawKey {
    int64_t seed;
    int64_t step;
    int64_t layer;
};

// Whether bound < e^second / (e^first + e^second).
inline bool exceeds_share_of_two(double bound, double first, double second) {
    const double shift = std::max(first, second);
    const double power = std::exp(second - shift);
    return bound * (std::exp(first - shift) + power) < power;
}

// The sum of all exp(logit - largest), in float64.
template <typename T>
MNMT_MOE_INLINE double sum_of_powers(const T* logits, int32_t length, double largest) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t expert = 0; expert < length; ++expert) {
        sum += exponential(static_cast<double>(logits[expert]) - largest);
    }
    return sum;
}

// Whether p of the second choice exceeds `bound`, which is draw * threshold.
template <typename T>
MNMT_MOE_INLINE bool exceeds(double bound, const T* logits, int32_t length, const int32_t* choices,
                             double largest, Renormalise renormalise) {
    const double first = logits[choices[0]], second = logits[choices[1]];
    if (renormalise == Renormalise::before) {
        return exceeds_share_of_two(bound, first, second);
    }
    return bound * sum_of_powers(logits, length, largest) < std::exp(second - largest);
}

}  // namespace mnmt_moe
