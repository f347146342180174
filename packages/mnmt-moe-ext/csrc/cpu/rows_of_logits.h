// One token's logits: the largest, exponentials, and random choices. For gate_kernels.cpp only.
#pragma once

#include "gate_kernels.h"
#include "lanes.h"

namespace mnmt_moe::MNMT_MOE_ISA {
namespace {

MNMT_MOE_INLINE Values<double> load_double(const double* from) { return load(from); }
MNMT_MOE_INLINE Values<double> load_double(const float* from) {
    typedef float Floats __attribute__((vector_size(32)));
    Floats floats;
    std::memcpy(&floats, from, sizeof(floats));
    return __builtin_convertvector(floats, Values<double>);
}

// To `row`, and -infinity to the rest of it. `readable` numbers are there to be read, those of later rows
// included: reading beyond the row's end is faster than reading its last numbers one by one.
template <typename T>
MNMT_MOE_INLINE void load_row(const T* logits, int64_t num_experts, int64_t readable, T* row) {
    constexpr int64_t lanes = Lanes<T>::count;
    const int64_t padded = padded_row<T>(num_experts);
    const int64_t in_vectors = padded <= readable ? padded : padded - lanes;
    for (int64_t expert = 0; expert < in_vectors; expert += lanes) {
        store<T>(row + expert, load(logits + expert));
    }
    for (int64_t expert = in_vectors; expert < num_experts; ++expert) {
        row[expert] = logits[expert];
    }
    const int32_t rest = static_cast<int32_t>(num_experts - (padded - lanes));
    const Values<T> nothing = Values<T>{} - std::numeric_limits<T>::infinity();
    store<T>(row + padded - lanes,
             lane_numbers<T>(AllLanes<T>()) < rest ? load(row + padded - lanes) : nothing);
}

// A number of a row and where it is.
template <typename T>
struct Entry {
    T value;
    int32_t expert;
};

template <typename T>
struct EntryPair {
    Entry<T> first;
    Entry<T> second;
};

// The two largest numbers of a row, the lower index first among equals; with `bounded`, of those that come
// after `bound` in this order. NaN and -infinity are none: then the value is -infinity and the expert kNone.
template <bool bounded, typename T>
MNMT_MOE_INLINE EntryPair<T> two_largest(const T* row, int64_t padded, const Entry<T>& bound) {
    constexpr int32_t nowhere = std::numeric_limits<int32_t>::max();
    const Values<T> none = Values<T>{} - std::numeric_limits<T>::infinity();
    Values<T> best = none, next = none;
    Integers<T> best_at = Integers<T>{} + nowhere, next_at = best_at, index = lane_numbers<T>(AllLanes<T>());
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        Values<T> x = load(row + expert);
        if constexpr (bounded) {
            x = (x < bound.value) | ((x == bound.value) & (index > bound.expert)) ? x : none;
        }
        const auto above_best = x > best, above_next = x > next;
        next = above_best ? best : (above_next ? x : next);
        next_at = above_best ? best_at : (above_next ? index : next_at);
        best = above_best ? x : best;
        best_at = above_best ? index : best_at;
        index += Lanes<T>::count;
    }
    const auto lowest = [&](const Values<T>& values, const Integers<T>& at) {
        const T largest = largest_lane<T>(values);
        const auto expert = smallest_lane<T>(values == largest ? at : Integers<T>{} + nowhere);
        return Entry<T>{largest, expert == nowhere ? kNone : static_cast<int32_t>(expert)};
    };
    const Entry<T> first = lowest(best, best_at);
    const auto is_first = best_at == first.expert;
    return {first, lowest(is_first ? next : best, is_first ? next_at : best_at)};
}

// The lowest index that is none of the `count` before.
MNMT_MOE_INLINE int32_t lowest_other(const int32_t* indices, int count) {
    int32_t lowest = 0;
    for (int at = 0; at < count; ++at) {
        if (indices[at] == lowest) {
            ++lowest;
            at = -1;
        }
    }
    return lowest;
}

// Writes where the top_k largest numbers of a row are, the lower index first among equals, and returns the
// largest. NaN counts as -infinity.
template <typename T>
MNMT_MOE_INLINE T choose_largest(const T* row, int64_t padded, int top_k, int32_t* choices) {
    EntryPair<T> pair = two_largest<false>(row, padded, Entry<T>{});
    const T largest = pair.first.value;
    for (int rank = 0; rank < top_k; rank += 2) {
        if (rank > 0) {
            pair = two_largest<true>(row, padded, pair.second);
        }
        choices[rank] = pair.first.expert != kNone ? pair.first.expert : lowest_other(choices, rank);
        if (rank + 1 < top_k) {
            choices[rank + 1] =
                pair.second.expert != kNone ? pair.second.expert : lowest_other(choices, rank + 1);
        }
    }
    return largest;
}

template <typename T>
MNMT_MOE_INLINE T largest_of_row(const T* row, int64_t padded) {
    Values<T> best = Values<T>{} - std::numeric_limits<T>::infinity();
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        const Values<T> x = load(row + expert);
        best = x > best ? x : best;
    }
    return largest_lane<T>(best);
}

// sums = row + bias.
template <typename T>
MNMT_MOE_INLINE void add_rows(const T* row, const T* bias, int64_t padded, T* sums) {
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        store<T>(sums + expert, load(row + expert) + load(bias + expert));
    }
}

// Replaces x by exp(x - shift) and returns their sum.
template <typename T>
MNMT_MOE_INLINE T exponentiate(T* row, int64_t padded, T shift) {
    Values<T> sum{};
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        const Values<T> power = exponential<T>(load(row + expert) - shift);
        store<T>(row + expert, power);
        sum += power;
    }
    return sum_of_lanes<T>(sum);
}

// In float64 whatever the logits are: decisions must not hang on rounding.
template <typename T>
MNMT_MOE_INLINE double sum_of_exponentials(const T* row, int64_t padded, double shift) {
    Values<double> sum{};
    for (int64_t expert = 0; expert < padded; expert += Lanes<double>::count) {
        sum += exponential<double>(load_double(row + expert) - shift);
    }
    return sum_of_lanes<double>(sum);
}

// Whether draw < weight of the second choice / threshold. `first` and `second` are the choices' logits.
template <typename T>
MNMT_MOE_INLINE bool weighs_enough(const T* row, const GateOptions& options, double first, double second,
                                   double largest, double draw) {
    const double bound = draw * options.threshold;
    if (options.renormalise != Renormalise::before) {
        const double all = sum_of_exponentials(row, padded_row<T>(options.num_experts), largest);
        return bound * all < __builtin_exp(second - largest);
    }
    const double shift = first > second ? first : second;
    const double chance = __builtin_exp(second - shift);
    return bound * (__builtin_exp(first - shift) + chance) < chance;
}

}  // namespace
}  // namespace mnmt_moe::MNMT_MOE_ISA
