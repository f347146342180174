// ReLU with dropout, y = mask · max(0, x), in place, and its gradient, for which y says where both let through.

#include "dropout.h"

namespace mnmt {

// A threshold of 0 is no dropout.
template <class S>
void relu(S* x, int64_t number, int64_t seed, int64_t threshold, int64_t threads) {
  using T = Computed<S>;
  for_parts(number, PART, threads, [=](int64_t first, int64_t last) {
    S* from = x + first;
    const uint32_t size = uint32_t(last - first);
    if (threshold) {
      const Dropout<T> factors(seed, threshold, first);
      for (uint32_t i = 0; i < size; ++i) {
        const T value = from[i];
        from[i] = S((value < T(0) ? T(0) : value) * factors[i]);
      }
    } else {
      for (uint32_t i = 0; i < size; ++i) {
        const T value = from[i];
        from[i] = S(value < T(0) ? T(0) : value);
      }
    }
  });
}

// grad = factor · grad where y is not 0.
template <class S>
void relu_gradient(S* grad, const S* y, int64_t number, double factor, int64_t threads) {
  using T = Computed<S>;
  for_parts(number, PART, threads, [=](int64_t first, int64_t last) {
    S* to = grad + first;
    const S* from = y + first;
    const uint32_t size = uint32_t(last - first);
    const T scale = T(factor);
    for (uint32_t i = 0; i < size; ++i) to[i] = S(T(from[i]) == T(0) ? T(0) : scale * T(to[i]));
  });
}

}  // namespace mnmt

#define PARAMETERS(T) (T * x, int64_t number, int64_t seed, int64_t threshold, int64_t threads)
MNMT_EXPORT_ALL(relu, PARAMETERS, (x, number, seed, threshold, threads))
#undef PARAMETERS

#define PARAMETERS(T) (T * grad, const T* y, int64_t number, double factor, int64_t threads)
MNMT_EXPORT_ALL(relu_gradient, PARAMETERS, (grad, y, number, factor, threads))
