// What the operations share: loops over threads, the exponential function and random numbers.
//
// Loops over elements are written so that a compiler turns them into vector instructions. A function of each
// element has no branches and calls nothing that is not inlined; hence an exponential function of our own. Only
// sums by `sum_over` may be taken in another order; all else is computed as it is written.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace mnmt {

// Calls f(first, last) for the parts [0, size), [size, 2 size), … of [0, number), on so many threads.
// The parts do not depend on the threads, so neither does the order of any sum.
template <class F>
void for_parts(int64_t number, int64_t size, int64_t threads, F f) {
  const int64_t parts = (number + size - 1) / size;
#pragma omp parallel for num_threads(static_cast<int>(threads)) if (threads > 1 && parts > 1)
  for (int64_t part = 0; part < parts; ++part) {
    f(part * size, std::min(number, (part + 1) * size));
  }
}

// Σ f(i) over [first, last). A function of its own, since GCC computes the marked loop slowly within a lambda.
template <class T, class F>
T sum_over(int64_t first, int64_t last, F f) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = first; i < last; ++i) sum += f(i);
  return sum;
}

// e^x to 2 units in the last place, for x between -87.3 and 88; below and above it is as at these bounds, 1.2e-38
// and 1.7e38. NaN stays.
inline float exponential(float x) {
  x = std::min(std::max(x, -87.3f), 88.0f);
  const float n = std::nearbyint(x * 1.44269504088896341f);
  // x - n ln 2, with ln 2 in two parts so that nothing is lost.
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return y * power;
}

inline double exponential(double x) { return std::exp(x); }

// Mixes 32 bits, or each 32 of a vector, with a key (Wellons's `lowbias32` form).
template <class X>
X mix_bits(X x, uint32_t key) {
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= (x >> 15) ^ key;
  x *= 0x735a2d97u;
  x ^= x >> 15;
  return x;
}

// 32 random bits, a function of a seed and an element's number.
inline uint32_t random_bits(uint64_t seed, uint64_t number) {
  return mix_bits<uint32_t>(static_cast<uint32_t>(number) + static_cast<uint32_t>(seed),
                            static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(number >> 32));
}

// A bfloat16 number in memory. It is computed with in float32.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  // Rounds to the nearest, to even bits if two are as near; NaN stays NaN.
  explicit BFloat16(float x) {
    uint32_t all;
    std::memcpy(&all, &x, sizeof all);
    const uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>(x != x ? (all >> 16) | 64u : rounded);
  }
  operator float() const {
    const uint32_t all = static_cast<uint32_t>(bits) << 16;
    float x;
    std::memcpy(&x, &all, sizeof x);
    return x;
  }
};

// The type in which numbers of a type are computed with.
template <class S>
struct ComputedAs {
  using type = S;
};
template <>
struct ComputedAs<BFloat16> {
  using type = float;
};
template <class S>
using Computed = typename ComputedAs<S>::type;

}  // namespace mnmt

// Instantiates a template `name<T>(arguments…)` as the C functions name_float32 and name_float64.
#define MNMT_EXPORT(name, parameters, arguments)                                       \
  extern "C" void name##_float32 parameters(float) { mnmt::name<float> arguments; }    \
  extern "C" void name##_float64 parameters(double) { mnmt::name<double> arguments; }

// The same and name_bfloat16.
#define MNMT_EXPORT_ALL(name, parameters, arguments) \
  MNMT_EXPORT(name, parameters, arguments)           \
  extern "C" void name##_bfloat16 parameters(mnmt::BFloat16) { mnmt::name<mnmt::BFloat16> arguments; }
