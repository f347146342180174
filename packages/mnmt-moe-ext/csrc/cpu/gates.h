// The gates of a token, g = softmax(logits).
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "clones.h"

namespace mnmt_moe {

// Constants of `exponential`. ln2_high has few digits, so that its product with a small integer is exact.
template <typename T>
struct Exponential;

template <>
struct Exponential<float> {
    using Bits = uint32_t;
    static constexpr float round_to_integer = 0x1.8p23f;
    static constexpr float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f;
    static constexpr float smallest_exponent = -87.0f;
    static constexpr int degree = 7, mantissa_bits = 23;
    static constexpr Bits bits_of_one = 0x3F800000;
};

template <>
struct Exponential<double> {
    using Bits = uint64_t;
    static constexpr double round_to_integer = 0x1.8p52;
    static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    static constexpr double smallest_exponent = -708.0;
    static constexpr int degree = 13, mantissa_bits = 52;
    static constexpr Bits bits_of_one = 0x3FF0000000000000;
};

// The Taylor polynomial of e^r, as long as rounding can tell for |r| <= ln(2) / 2.
template <typename T>
MNMT_MOE_INLINE T taylor(T r) {
    constexpr int degree = Exponential<T>::degree;
    T factorial = 1, coefficients[degree + 1] = {1};
    for (int k = 1; k <= degree; ++k) {
        factorial *= static_cast<T>(k);
        coefficients[k] = 1 / factorial;
    }
    T sum = coefficients[degree];
    for (int k = degree - 1; k >= 0; --k) {
        sum = sum * r + coefficients[k];
    }
    return sum;
}

// e^x = 2^n e^r for x of at most about 1, with n = round(x / ln 2). Results too small for a normal number are
// 0. Unlike std::exp it becomes vector instructions.
template <typename T>
MNMT_MOE_INLINE T exponential(T x) {
    using Constants = Exponential<T>;
    constexpr T log2_e = static_cast<T>(1.4426950408889634);
    const T shifted = x * log2_e + Constants::round_to_integer;
    const T n = shifted - Constants::round_to_integer;
    const T r = x - n * Constants::ln2_high - n * Constants::ln2_low;
    // The low bits of `shifted` are n, which belongs into the exponent.
    typename Constants::Bits bits;
    std::memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits << Constants::mantissa_bits) + Constants::bits_of_one;
    T power;
    std::memcpy(&power, &bits, sizeof(power));
    return x < Constants::smallest_exponent ? 0 : taylor(r) * power;
}

// NaN is never the largest.
template <typename T>
MNMT_MOE_INLINE T largest_logit(const T* logits, int32_t length) {
    T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
    for (int32_t expert = 0; expert < length; ++expert) {
        largest = logits[expert] > largest ? logits[expert] : largest;
    }
    return largest;
}

// Replaces each logit x by exp(x - shift) and returns their sum.
template <typename T>
MNMT_MOE_INLINE T exponentiate(T* logits, int32_t length, T shift) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t expert = 0; expert < length; ++expert) {
        logits[expert] = exponential(logits[expert] - shift);
        sum += logits[expert];
    }
    return sum;
}

}  // namespace mnmt_moe
