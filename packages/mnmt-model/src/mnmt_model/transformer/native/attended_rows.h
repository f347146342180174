// What attention computes with keys and values that lie anywhere: dot products, and weighted sums of rows.

#pragma once

#include "small_products.h"

namespace mnmt {

#if defined(__AVX512F__)
inline float sum_of(Vector<float> x) { return _mm512_reduce_add_ps(x); }
inline double sum_of(Vector<double> x) { return _mm512_reduce_add_pd(x); }
#else
template <class T>
auto sum_of(T x) {
  return total<std::decay_t<decltype(x[0])>>(x);
}
#endif

template <class T>
T dot(const T* a, const T* b, int64_t width) {
  Vector<T> sums = {};
  int64_t i = 0;
  for (; i + LANES<T> <= width; i += LANES<T>) sums += load(a + i) * load(b + i);
  if (i < width) sums += load(a + i, width - i) * load(b + i, width - i);
  return sum_of(sums);
}

// y += Σ weights[i] row(i), of VECTORS vectors from element `first` on; the last has `number` elements.
template <class T, int VECTORS, class Row>
void add_block(const T* weights, int64_t count, Row row, T* y, int64_t first, int64_t number) {
  constexpr int LAST = VECTORS - 1;
  Vector<T> sums[VECTORS];
  for (int j = 0; j < LAST; ++j) sums[j] = load(y + first + j * LANES<T>);
  sums[LAST] = load(y + first + LAST * LANES<T>, number);
  for (int64_t i = 0; i < count; ++i) {
    const T* x = row(i) + first;
    for (int j = 0; j < LAST; ++j) sums[j] += weights[i] * load(x + j * LANES<T>);
    sums[LAST] += weights[i] * load(x + LAST * LANES<T>, number);
  }
  for (int j = 0; j < LAST; ++j) store(y + first + j * LANES<T>, sums[j]);
  store(y + first + LAST * LANES<T>, sums[LAST], number);
}

// y += Σ weights[i] row(i), rows of `width` elements.
template <class T, class Row>
void add_rows(const T* weights, int64_t count, Row row, T* y, int64_t width) {
  int64_t first = 0;
  for (; first + 4 * LANES<T> <= width; first += 4 * LANES<T>) {
    add_block<T, 4>(weights, count, row, y, first, LANES<T>);
  }
  for (; first < width; first += LANES<T>) {
    add_block<T, 1>(weights, count, row, y, first, std::min(LANES<T>, width - first));
  }
}

}  // namespace mnmt
