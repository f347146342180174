// The factors of dropout.

#pragma once

#include "vector.h"

namespace mnmt {

// Elements of a part, about. In dropout it is a power of two, so that no part has elements on both sides of a
// multiple of 2³²; a row of GELU that has, repeats the draws of some elements far before.
constexpr int64_t PART = 1 << 14;

// The factors of consecutive elements, from number `first` on.
template <class T>
struct Dropout {
  // An element remains if 32 random bits are less than `threshold`.
  Dropout(int64_t seed, int64_t threshold, int64_t first)
      : key(uint64_t(seed) ^ (uint64_t(first) & ~uint64_t(0xffffffff))),
        low(uint32_t(first)),
        least(uint32_t(threshold)),
        factor(T(4294967296.0 / double(threshold))) {}

  T operator[](uint32_t element) const { return random_bits(key, low + element) < least ? factor : T(0); }

 private:
  uint64_t key;
  uint32_t low, least;
  T factor;
};

// The factors where there is no dropout.
template <class T>
struct NoDropout {
  T operator[](uint32_t) const { return T(1); }
};

}  // namespace mnmt
