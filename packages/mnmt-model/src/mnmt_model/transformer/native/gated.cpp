// Gated units with dropout, and their gradient.

#include "gated.h"

namespace mnmt {

// Writes the gradients of a and b, and the row itself to y if it HAS one. Compilers do not ask whether so many rows
// overlap.
template <class Unit, class T, bool HAS_Y, class S, class Factors>
void gated_gradient_row(const S* __restrict__ grad, const S* __restrict__ a, const S* __restrict__ b,
                        S* __restrict__ y, S* __restrict__ grad_a, S* __restrict__ grad_b, int64_t width,
                        Factors factors) {
  for (uint32_t i = 0; i < uint32_t(width); ++i) {
    const T x = a[i], sigmoid = gate_sigmoid<Unit>(x), scale = factors[i] * sigmoid;
    const T slope = x * (T(Unit::LINEAR) + T(3 * Unit::CUBIC) * x * x);
    const T gate = scale * x, other = b[i], gradient = grad[i];
    if constexpr (HAS_Y) y[i] = S(gate * other);
    grad_b[i] = S(gradient * gate);
    grad_a[i] = S(gradient * scale * other * (T(1) + slope * (T(1) - sigmoid)));
  }
}

// Calls f(row, factors) for all rows; a threshold of 0 is no dropout.
template <class T, class F>
void for_rows(int64_t rows, int64_t width, int64_t seed, int64_t threshold, int64_t threads, F f) {
  for_parts(rows, std::max<int64_t>(1, PART / std::max<int64_t>(1, width)), threads, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      if (threshold) {
        f(row, Dropout<T>(seed, threshold, row * width));
      } else {
        f(row, NoDropout<T>());
      }
    }
  });
}

template <class Unit, class S>
void gated(const S* both, S* y, int64_t rows, int64_t width, int64_t seed, int64_t threshold, int64_t threads) {
  using T = Computed<S>;
  for_rows<T>(rows, width, seed, threshold, threads, [=](int64_t row, auto factors) {
    const S* a = both + 2 * row * width;
    gated_row<Unit, T>(a, a + width, y + row * width, width, factors);
  });
}

template <class Unit, class S>
void gated_gradient(const S* grad, const S* both, S* y, S* grad_both, int64_t rows, int64_t width, int64_t seed,
                    int64_t threshold, int64_t threads) {
  using T = Computed<S>;
  for_rows<T>(rows, width, seed, threshold, threads, [=](int64_t row, auto factors) {
    const S* a = both + 2 * row * width;
    S* grad_a = grad_both + 2 * row * width;
    if (y) {
      gated_gradient_row<Unit, T, true>(grad + row * width, a, a + width, y + row * width, grad_a, grad_a + width,
                                        width, factors);
    } else {
      gated_gradient_row<Unit, T, false>(grad + row * width, a, a + width, y, grad_a, grad_a + width, width, factors);
    }
  });
}

#define MNMT_UNITS(name)                                        \
  template <class S, class... Arguments>                        \
  void name##_gelu(Arguments... arguments) {                    \
    name<GELU, S>(arguments...);                                \
  }                                                             \
  template <class S, class... Arguments>                        \
  void name##_silu(Arguments... arguments) {                    \
    name<SiLU, S>(arguments...);                                \
  }
MNMT_UNITS(gated)
MNMT_UNITS(gated_gradient)

}  // namespace mnmt

#define PARAMETERS(T)                                                                              \
  (const T* both, T* y, int64_t rows, int64_t width, int64_t seed, int64_t threshold, int64_t threads)
MNMT_EXPORT_ALL(gated_gelu, PARAMETERS, (both, y, rows, width, seed, threshold, threads))
MNMT_EXPORT_ALL(gated_silu, PARAMETERS, (both, y, rows, width, seed, threshold, threads))
#undef PARAMETERS

#define PARAMETERS(T)                                                                                       \
  (const T* grad, const T* both, T* y, T* grad_both, int64_t rows, int64_t width, int64_t seed, int64_t threshold, \
   int64_t threads)
MNMT_EXPORT_ALL(gated_gradient_gelu, PARAMETERS, (grad, both, y, grad_both, rows, width, seed, threshold, threads))
MNMT_EXPORT_ALL(gated_gradient_silu, PARAMETERS, (grad, both, y, grad_both, rows, width, seed, threshold, threads))
