// Gated GELU with dropout, and its gradient.

#include "gelu.h"

namespace mnmt {

template <class T, class Factors>
void gelu_gradient_row(const T* grad, const T* a, const T* b, T* grad_a, T* grad_b, int64_t width,
                       Factors factors) {
  for (uint32_t i = 0; i < uint32_t(width); ++i) {
    const T x = a[i], sigmoid = sigmoid_of_gelu(x), scale = grad[i] * factors[i] * sigmoid;
    const T slope = x * (T(LINEAR) + T(3 * CUBIC) * x * x);
    grad_b[i] = scale * x;
    grad_a[i] = scale * b[i] * (T(1) + slope * (T(1) - sigmoid));
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

template <class T>
void gated_gelu(const T* both, T* y, int64_t rows, int64_t width, int64_t seed, int64_t threshold,
                int64_t threads) {
  for_rows<T>(rows, width, seed, threshold, threads, [=](int64_t row, auto factors) {
    const T* a = both + 2 * row * width;
    gelu_row(a, a + width, y + row * width, width, factors);
  });
}

template <class T>
void gated_gelu_gradient(const T* grad, const T* both, T* grad_both, int64_t rows, int64_t width, int64_t seed,
                         int64_t threshold, int64_t threads) {
  for_rows<T>(rows, width, seed, threshold, threads, [=](int64_t row, auto factors) {
    const T* a = both + 2 * row * width;
    T* grad_a = grad_both + 2 * row * width;
    gelu_gradient_row(grad + row * width, a, a + width, grad_a, grad_a + width, width, factors);
  });
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                              \
  (const T* both, T* y, int64_t rows, int64_t width, int64_t seed, int64_t threshold, int64_t threads)
MNMT_EXPORT(gated_gelu, PARAMETERS, (both, y, rows, width, seed, threshold, threads))
#undef PARAMETERS

#define PARAMETERS(T)                                                                                     \
  (const T* grad, const T* both, T* grad_both, int64_t rows, int64_t width, int64_t seed, int64_t threshold, \
   int64_t threads)
MNMT_EXPORT(gated_gelu_gradient, PARAMETERS, (grad, both, grad_both, rows, width, seed, threshold, threads))
