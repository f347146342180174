// Products of rows with a panel: two vectors' columns of a matrix, laid out in the order in which they are used. In
// bfloat16 two steps of a sum are one where the processor has an instruction for it.

#pragma once

#include "small_products.h"
#include "vector.h"

namespace mnmt {

#if defined(__SSE__) && !defined(__AVX512F__)
constexpr int PANEL_ROWS = 6;  // Of 16 registers.
#else
constexpr int PANEL_ROWS = 12;  // Of 32.
#endif

// How products of numbers of type S are computed: Left is what a step broadcasts, and Right what a panel holds.
template <class S>
struct Dot {
  using Sum = Computed<S>;
  using Left = S;
  using Right = Sum;
  static constexpr int64_t DEPTH = 1, ROWS = PANEL_ROWS, WIDTH = 2 * LANES<Sum>;

  static int64_t steps(int64_t inner) { return inner; }

  static Vector<Sum> add(Vector<Sum> sum, Left left, const Right* right) { return sum + Sum(left) * load(right); }

  // to[k][j] = from[k][j], and 0 in columns behind.
  static void pack(const S* from, int64_t row, int64_t inner, int64_t columns, Right* to) {
    for (int64_t k = 0; k < inner; ++k, from += row, to += WIDTH) {
      for (int64_t j = 0; j < columns; ++j) to[j] = Sum(from[j]);
      for (int64_t j = columns; j < WIDTH; ++j) to[j] = 0;
    }
  }

  // to[k][j] = from[j][k]
  static void pack_transposed(const S* from, int64_t row, int64_t inner, int64_t columns, Right* to) {
    if (columns < WIDTH) std::fill(to, to + inner * WIDTH, Right(0));
    if constexpr (std::is_same_v<S, Sum>) {
      transpose(from, row, to, WIDTH, columns, inner);
    } else {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t k = 0; k < inner; ++k) to[k * WIDTH + j] = Sum(from[j * row + k]);
      }
    }
  }

  // to[k][i] = from[k][i], with rows of `to_row`.
  static void pack_left(const S* from, int64_t row, int64_t inner, int64_t columns, int64_t to_row, Left* to) {
    for (int64_t k = 0; k < inner; ++k) std::copy(from + k * row, from + k * row + columns, to + k * to_row);
  }
};

#if defined(__AVX512BF16__)
template <>
struct Dot<BFloat16> {
  using Sum = float;
  using Left = uint32_t;  // Two numbers, the first below.
  using Right = uint32_t;
  static constexpr int64_t DEPTH = 2, ROWS = PANEL_ROWS, WIDTH = 2 * LANES<float>;

  static int64_t steps(int64_t inner) { return (inner + 1) / 2; }

  static Vector<float> add(Vector<float> sum, Left left, const Right* right) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(int(left)), (__m512bh)_mm512_load_si512(right));
  }

  static void pack(const BFloat16* from, int64_t row, int64_t inner, int64_t columns, Right* to) {
    interleave(from, row, inner, columns, WIDTH, to);
    for (int64_t k = 0; columns < WIDTH && k < steps(inner); ++k) {
      std::fill(to + k * WIDTH + columns, to + (k + 1) * WIDTH, 0u);
    }
  }

  static void pack_transposed(const BFloat16* from, int64_t row, int64_t inner, int64_t columns, Right* to) {
    if (columns < WIDTH) std::fill(to, to + steps(inner) * WIDTH, 0u);
    transpose(reinterpret_cast<const float*>(from), row / 2, reinterpret_cast<float*>(to), WIDTH, columns, inner / 2);
  }

  static void pack_left(const BFloat16* from, int64_t row, int64_t inner, int64_t columns, int64_t to_row, Left* to) {
    interleave(from, row, inner, columns, to_row, to);
  }

 private:
  // Takes numbers of two rows in turn, from this one on.
  static __m512i lanes_from(int first) {
    uint16_t lanes[32];
    for (int i = 0; i < 32; ++i) lanes[i] = uint16_t(first + i / 2 + i % 2 * 32);
    return _mm512_loadu_si512(lanes);
  }

  // to[k][j] = from[2 k][j] and from[2 k + 1][j]
  static void interleave(const BFloat16* from, int64_t row, int64_t inner, int64_t columns, int64_t to_row,
                         uint32_t* to) {
    const __m512i low = lanes_from(0), high = lanes_from(16);
    for (int64_t k = 0; k < inner; k += 2, from += 2 * row, to += to_row) {
      const BFloat16* second = from + row;
      if (k + 1 < inner && columns == WIDTH) {
        const __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(second);
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, low, b));
        _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(a, high, b));
      } else if (k + 1 < inner) {
        for (int64_t j = 0; j < columns; ++j) to[j] = uint32_t(from[j].bits) | uint32_t(second[j].bits) << 16;
      } else {
        for (int64_t j = 0; j < columns; ++j) to[j] = from[j].bits;
      }
    }
  }
};
#endif

// Stores a panel's whole row, past the caches where that can be said: results so large leave them in any case.
template <class T>
void store_whole(T* to, Vector<T> first, Vector<T> second) {
#if defined(__AVX512F__)
  if (reinterpret_cast<uintptr_t>(to) % BYTES == 0) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)first);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to) + 1, (__m512i)second);
    return;
  }
#endif
  store(to, first);
  store(to + LANES<T>, second);
}

inline void store_some(BFloat16* to, Vector<float> numbers, int64_t number) {
  float each[LANES<float>];
  store(each, numbers);
  for (int64_t i = 0; i < number; ++i) to[i] = BFloat16(each[i]);
}

template <class T>
void store_some(T* to, Vector<T> numbers, int64_t number) {
  store(to, numbers, number);
}

inline void store_whole(BFloat16* to, Vector<float> first, Vector<float> second) {
#if defined(__AVX512BF16__)
  const __m512i row = (__m512i)_mm512_cvtne2ps_pbh(second, first);
  if (reinterpret_cast<uintptr_t>(to) % BYTES == 0) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), row);
  } else {
    _mm512_storeu_si512(to, row);
  }
#else
  store_some(to, first, LANES<float>);
  store_some(to + LANES<float>, second, LANES<float>);
#endif
}

// Stores a panel's row, of which y has so many columns.
template <class Sum, class Y>
void store_row(Y* to, Vector<Sum> first, Vector<Sum> second, int64_t columns) {
  if (columns == 2 * LANES<Sum>) return store_whole(to, first, second);
  store_some(to, first, std::min(LANES<Sum>, columns));
  if (columns > LANES<Sum>) store_some(to + LANES<Sum>, second, columns - LANES<Sum>);
}

// ROWS rows of y = left · panel.
template <class D, int ROWS, class Y>
void panel_product(Matrix<typename D::Left> left, const typename D::Right* panel, int64_t steps, Y* y, int64_t y_row,
                   int64_t columns) {
  using Sum = typename D::Sum;
  Vector<Sum> sums[2 * ROWS] = {};
  for (int64_t k = 0; k < steps; ++k) {
#pragma GCC unroll 32
    for (int i = 0; i < 2 * ROWS; ++i) {
      const auto* right = panel + k * D::WIDTH + i % 2 * LANES<Sum>;
      sums[i] = D::add(sums[i], left.data[i / 2 * left.row + k * left.column], right);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < ROWS; ++i) store_row<Sum>(y + i * y_row, sums[2 * i], sums[2 * i + 1], columns);
}

// The same of 1 to ROWS rows.
template <class D, int ROWS, class Y>
void some_rows(Matrix<typename D::Left> left, const typename D::Right* panel, int64_t steps, Y* y, int64_t y_row,
               int64_t rows, int64_t columns) {
  if (rows == ROWS) return panel_product<D, ROWS>(left, panel, steps, y, y_row, columns);
  if constexpr (ROWS > 1) some_rows<D, ROWS - 1>(left, panel, steps, y, y_row, rows, columns);
}

// y = left · panel, of any number of rows.
template <class D, class Y>
void rows_product(Matrix<typename D::Left> left, const typename D::Right* panel, int64_t steps, Y* y, int64_t y_row,
                  int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; row += D::ROWS) {
    const int64_t number = std::min(D::ROWS, rows - row);
    some_rows<D, D::ROWS>(left.below(row), panel, steps, y + row * y_row, y_row, number, columns);
  }
}

}  // namespace mnmt
