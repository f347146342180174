// Vectors of 64 bytes, whatever the instruction set: where registers are shorter the compiler takes several.
// So sums over a row are added in the same order everywhere. For *_kernels.cpp files only, which are compiled
// several times.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "isa.h"

// Every function that takes or returns such a vector is inlined, so no calling convention is at stake.
#pragma GCC diagnostic ignored "-Wpsabi"
#define MNMT_MOE_INLINE [[gnu::always_inline]] inline

namespace mnmt_moe::MNMT_MOE_ISA {
namespace {

template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
    static constexpr int count = 16;
    typedef float Values __attribute__((vector_size(64)));
    typedef int32_t Integers __attribute__((vector_size(64)));
    typedef uint32_t Bits __attribute__((vector_size(64)));
    static constexpr float round_to_integer = 0x1.8p23f;
    static constexpr float ln2_high = 0x1.63p-1f;
    static constexpr float ln2_low = -0x1.bd0106p-13f;
    static constexpr float smallest_exponent = -87.0f;
    static constexpr int degree = 7;
    static constexpr int mantissa_bits = 23;
    static constexpr uint32_t bits_of_one = 0x3F800000;
};

template <>
struct Lanes<double> {
    static constexpr int count = 8;
    typedef double Values __attribute__((vector_size(64)));
    typedef int64_t Integers __attribute__((vector_size(64)));
    typedef uint64_t Bits __attribute__((vector_size(64)));
    static constexpr double round_to_integer = 0x1.8p52;
    static constexpr double ln2_high = 0x1.62e42feep-1;
    static constexpr double ln2_low = 0x1.a39ef35793c76p-33;
    static constexpr double smallest_exponent = -708.0;
    static constexpr int degree = 13;
    static constexpr int mantissa_bits = 52;
    static constexpr uint64_t bits_of_one = 0x3FF0000000000000;
};

template <typename T>
using Values = typename Lanes<T>::Values;
template <typename T>
using Integers = typename Lanes<T>::Integers;
template <typename T>
using Bits = typename Lanes<T>::Bits;

template <typename T>
using AllLanes = std::make_index_sequence<Lanes<T>::count>;

// 0, 1, 2, ...
template <typename T, std::size_t... lane>
MNMT_MOE_INLINE Integers<T> lane_numbers(std::index_sequence<lane...>) {
    return Integers<T>{static_cast<int32_t>(lane)...};
}

template <typename T>
MNMT_MOE_INLINE Values<T> load(const T* from) {
    Values<T> values;
    std::memcpy(&values, from, sizeof(values));
    return values;
}

template <typename T>
MNMT_MOE_INLINE void store(T* to, const Values<T>& values) {
    std::memcpy(to, &values, sizeof(values));
}

// e^x = 2^n e^r for x of at most about 1: n = round(x / ln 2), and the Taylor polynomial of e^r for |r| <=
// ln(2) / 2, as long as rounding can tell. Results too small for a normal number are 0.
template <typename T>
MNMT_MOE_INLINE Values<T> exponential(const Values<T>& x) {
    using L = Lanes<T>;
    constexpr T log2_e = static_cast<T>(1.4426950408889634);
    const Values<T> shifted = x * log2_e + L::round_to_integer;
    const Values<T> n = shifted - L::round_to_integer;
    const Values<T> r = x - n * L::ln2_high - n * L::ln2_low;
    T factorials[L::degree + 1] = {1};
    for (int k = 1; k <= L::degree; ++k) {
        factorials[k] = factorials[k - 1] * k;
    }
    Values<T> sum = r * (1 / factorials[L::degree]) + 1 / factorials[L::degree - 1];
    for (int k = L::degree - 2; k >= 0; --k) {
        sum = sum * r + 1 / factorials[k];
    }
    // The low bits of `shifted` are n.
    const Bits<T> power = (reinterpret_cast<Bits<T>>(shifted) << L::mantissa_bits) + L::bits_of_one;
    return x < L::smallest_exponent ? Values<T>{} : sum * reinterpret_cast<Values<T>>(power);
}

// Combines all lanes by halves: `combine` of two vectors, lane by lane.
template <typename T, int distance, typename Vector, typename Combine, std::size_t... lane>
MNMT_MOE_INLINE auto across_lanes(const Vector& v, Combine combine, std::index_sequence<lane...> lanes) {
    const Vector folded = combine(v, Vector{v[(lane + distance) % Lanes<T>::count]...});
    if constexpr (distance == 1) {
        return folded[0];
    } else {
        return across_lanes<T, distance / 2>(folded, combine, lanes);
    }
}

template <typename T, typename Vector, typename Combine>
MNMT_MOE_INLINE auto across_lanes(const Vector& v, Combine combine) {
    return across_lanes<T, Lanes<T>::count / 2>(v, combine, AllLanes<T>());
}

template <typename T>
MNMT_MOE_INLINE T sum_of_lanes(const Values<T>& v) {
    return across_lanes<T>(v, [](const Values<T>& a, const Values<T>& b) { return a + b; });
}

template <typename T>
MNMT_MOE_INLINE T largest_lane(const Values<T>& v) {
    return across_lanes<T>(v, [](const Values<T>& a, const Values<T>& b) { return a > b ? a : b; });
}

template <typename T>
MNMT_MOE_INLINE auto smallest_lane(const Integers<T>& v) {
    return across_lanes<T>(v, [](const Integers<T>& a, const Integers<T>& b) { return a < b ? a : b; });
}

}  // namespace
}  // namespace mnmt_moe::MNMT_MOE_ISA
