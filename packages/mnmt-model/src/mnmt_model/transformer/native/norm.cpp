// RMSNorm: y = x / sqrt(mean x² + ε) · weight, over the columns.

#include "vector.h"

namespace mnmt {

// Parts are of `size` rows.
template <class T>
void rms_norm(const T* x, const T* weight, T* y, T* scales, int64_t size, int64_t rows, int64_t columns,
              double epsilon, int64_t threads) {
  for_parts(rows, size, threads, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const T* from = x + row * columns;
      T* to = y + row * columns;
      const T sum = sum_over<T>(0, columns, [=](int64_t i) { return from[i] * from[i]; });
      const T scale = T(1) / std::sqrt(sum / T(columns) + T(epsilon));
      for (int64_t i = 0; i < columns; ++i) to[i] = from[i] * scale * weight[i];
      scales[row] = scale;
    }
  });
}

// grad_parts: (parts of `size` rows, columns), each part's sum of the weight's gradient.
template <class T>
void rms_norm_gradient(const T* grad, const T* x, const T* weight, const T* scales, T* grad_x, T* grad_parts,
                       int64_t size, int64_t rows, int64_t columns, int64_t threads) {
  for_parts(rows, size, threads, [=](int64_t first, int64_t last) {
    T* sums = grad_parts + first / size * columns;
    for (int64_t i = 0; i < columns; ++i) sums[i] = 0;
    for (int64_t row = first; row < last; ++row) {
      const T *g = grad + row * columns, *from = x + row * columns;
      T* to = grad_x + row * columns;
      const T scale = scales[row];
      const T dot = sum_over<T>(0, columns, [=](int64_t i) {
        const T product = g[i] * from[i] * scale;
        sums[i] += product;
        return product * weight[i];
      });
      const T mean = dot / T(columns) * scale;
      for (int64_t i = 0; i < columns; ++i) to[i] = (g[i] * weight[i] - from[i] * mean) * scale;
    }
  });
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                             \
  (const T* x, const T* weight, T* y, T* scales, int64_t size, int64_t rows, int64_t columns,    \
   double epsilon, int64_t threads)
MNMT_EXPORT(rms_norm, PARAMETERS, (x, weight, y, scales, size, rows, columns, epsilon, threads))
#undef PARAMETERS

#define PARAMETERS(T)                                                                                 \
  (const T* grad, const T* x, const T* weight, const T* scales, T* grad_x, T* grad_parts, int64_t size, \
   int64_t rows, int64_t columns, int64_t threads)
MNMT_EXPORT(rms_norm_gradient, PARAMETERS,
            (grad, x, weight, scales, grad_x, grad_parts, size, rows, columns, threads))
