// A token's choices, its largest scores, the lower expert first among equals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "../options.h"
#include "clones.h"

namespace mnmt_moe {

// An expert, or kNone, and its score.
template <typename T>
struct Choice {
    T score;
    int32_t expert;
};

// Whether an expert comes after the last choice: `|` and `&` evaluate both sides, so that nothing branches.
template <typename T>
MNMT_MOE_INLINE bool is_after(T score, int32_t expert, Choice<T> last) {
    return (score < last.score) | ((score == last.score) & (expert > last.expert));
}

// The best choice after `last` by logit + bias. NaN and -infinity are none.
template <typename T>
MNMT_MOE_INLINE Choice<T> next_choice(const T* logits, const T* bias, int32_t length, Choice<T> last) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    T best = lowest;
#pragma omp simd reduction(max : best)
    for (int32_t expert = 0; expert < length; ++expert) {
        const T score = logits[expert] + bias[expert];
        const T eligible = is_after(score, expert, last) ? score : lowest;
        best = eligible > best ? eligible : best;
    }
    constexpr int32_t none = std::numeric_limits<int32_t>::max();
    int32_t first = none;
#pragma omp simd reduction(min : first)
    for (int32_t expert = 0; expert < length; ++expert) {
        const T score = logits[expert] + bias[expert];
        const int32_t here = (score == best) & is_after(score, expert, last) ? expert : none;
        first = here < first ? here : first;
    }
    return {best, best == lowest ? kNone : first};
}

// The lowest expert that is none of `choices`.
inline int32_t lowest_other(const int32_t* choices, int64_t number) {
    int32_t expert = 0;
    while (std::find(choices, choices + number, expert) != choices + number) {
        ++expert;
    }
    return expert;
}

// Writes the token's choices (k), those of scores that are NaN or -infinity last.
template <typename T>
MNMT_MOE_INLINE void choose_largest(const T* logits, const T* bias, int32_t length, int64_t top_k,
                                    int32_t* choices) {
    Choice<T> last{std::numeric_limits<T>::infinity(), kNone};
    for (int64_t rank = 0; rank < top_k; ++rank) {
        last = next_choice(logits, bias, length, last);
        choices[rank] = last.expert != kNone ? last.expert : lowest_other(choices, rank);
    }
}

}  // namespace mnmt_moe
