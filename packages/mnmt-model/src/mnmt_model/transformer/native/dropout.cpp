// Dropout: y = (residual +) mask · x, whose mask is a function of a seed and is never in memory.

#include "dropout.h"

namespace mnmt {

template <class T>
void dropout(const T* x, const T* residual, T* y, int64_t number, int64_t seed, int64_t threshold,
             int64_t threads) {
  for_parts(number, PART, threads, [=](int64_t first, int64_t last) {
    const Dropout<T> factors(seed, threshold, first);
    const T* from = x + first;
    T* to = y + first;
    const uint32_t size = uint32_t(last - first);
    if (residual) {
      const T* rest = residual + first;
      for (uint32_t i = 0; i < size; ++i) to[i] = rest[i] + from[i] * factors[i];
    } else {
      for (uint32_t i = 0; i < size; ++i) to[i] = from[i] * factors[i];
    }
  });
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                               \
  (const T* x, const T* residual, T* y, int64_t number, int64_t seed, int64_t threshold, int64_t threads)
MNMT_EXPORT(dropout, PARAMETERS, (x, residual, y, number, seed, threshold, threads))
