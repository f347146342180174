// Gated GELU, y = mask · GELU(a) · b, of rows that hold a and then b. GELU's tanh approximation is a σ(u) with
// u = LINEAR a + CUBIC a³, since (1 + tanh z) / 2 = σ(2z).

#pragma once

#include "dropout.h"

namespace mnmt {

constexpr double LINEAR = 1.5957691216057308;  // 2 √(2 / π)
constexpr double CUBIC = 0.044715 * LINEAR;

template <class T>
inline T sigmoid_of_gelu(T a) {
  return T(1) / (T(1) + exponential(-a * (T(LINEAR) + T(CUBIC) * a * a)));
}

template <class T, class Factors>
void gelu_row(const T* a, const T* b, T* y, int64_t width, Factors factors) {
  for (uint32_t i = 0; i < uint32_t(width); ++i) y[i] = a[i] * sigmoid_of_gelu(a[i]) * b[i] * factors[i];
}

}  // namespace mnmt
