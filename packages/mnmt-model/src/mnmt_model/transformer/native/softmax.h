// The softmax of a row of scores, in whole vectors.

#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "small_products.h"

namespace mnmt {

inline Vector<float> exponentials(Vector<float> x) {
  x = x < -87.0f ? Vector<float>{} - 87.0f : x;  // NaN stays.
  const Integers<float> n = __builtin_convertvector(x * 1.44269504088896341f - 0.5f, Integers<float>);
  const Vector<float> whole = __builtin_convertvector(n, Vector<float>);
  const Vector<float> r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
  Vector<float> y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const Integers<float> bits = (n + 127) << 23;
  Vector<float> power;
  std::memcpy(&power, &bits, sizeof power);
  return y * power;
}

inline Vector<double> exponentials(Vector<double> x) {
  for (int lane = 0; lane < LANES<double>; ++lane) x[lane] = std::exp(x[lane]);
  return x;
}

// The softmax of a row of scores, in place, of which `keys` are seen. It is NaN where a score is NaN or +inf,
// or all are -inf.
template <class T>
void softmax(T* row, int64_t keys, int64_t padded, const T* bias, T scale) {
  const Vector<T> least = std::numeric_limits<T>::lowest() + Vector<T>{};
  Vector<T> most = least;
  for (int64_t key = 0; key < padded; key += LANES<T>) {
    Vector<T> scores = load(row + key) * scale;
    if (bias) scores += load(bias + key);
    scores = lanes_below<T>(keys - key) ? scores : least;
    most = scores > most ? scores : most;
    store<T>(row + key, scores);
  }
  const T top = largest<T>(most);
  Vector<T> sums = {};
  for (int64_t key = 0; key < padded; key += LANES<T>) {
    Vector<T> powers = exponentials(load(row + key) - top);
    powers = lanes_below<T>(keys - key) ? powers : Vector<T>{};
    sums += powers;
    store<T>(row + key, powers);
  }
  // A NaN among the scores is in the sum, since the greatest leaves it out; +inf less +inf is one, too.
  const T lowest = std::numeric_limits<T>::lowest();
  const T share = top > lowest ? 1 / total<T>(sums) : std::numeric_limits<T>::quiet_NaN();
  for (int64_t key = 0; key < padded; key += LANES<T>) store<T>(row + key, load(row + key) * share);
}

}  // namespace mnmt
