// Gated units, y = mask · a σ(u) · b with u = LINEAR a + CUBIC a³, of rows that hold a and then b: GELU in its tanh
// approximation, since (1 + tanh z) / 2 = σ(2z), and SiLU, whose u is a.

#pragma once

#include "dropout.h"

namespace mnmt {

struct GELU {
  static constexpr double LINEAR = 1.5957691216057308;  // 2 √(2 / π)
  static constexpr double CUBIC = 0.044715 * LINEAR;
};

struct SiLU {
  static constexpr double LINEAR = 1;
  static constexpr double CUBIC = 0;
};

template <class Unit, class T>
inline T gate_sigmoid(T a) {
  return T(1) / (T(1) + exponential(-a * (T(Unit::LINEAR) + T(Unit::CUBIC) * a * a)));
}

// S is the type in memory, in which T's results are rounded.
template <class Unit, class T, class S, class Factors>
void gated_row(const S* a, const S* b, S* y, int64_t width, Factors factors) {
  for (uint32_t i = 0; i < uint32_t(width); ++i) {
    const T x = a[i];
    y[i] = S(x * gate_sigmoid<Unit>(x) * T(b[i]) * factors[i]);
  }
}

}  // namespace mnmt
