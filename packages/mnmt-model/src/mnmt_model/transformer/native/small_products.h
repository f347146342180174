// Products of matrices that fit into the caches near a core, computed in registers.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>
#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace mnmt {

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX2__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif

constexpr int BLOCK_ROWS = 6;
// Of a block's rows, six of which are held in registers: x86 has 16 before AVX-512, others 32.
#if defined(__SSE__) && !defined(__AVX512F__)
constexpr int BLOCK_VECTORS = 2;
#else
constexpr int BLOCK_VECTORS = 4;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(BYTES)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
using Integers = decltype(Vector<T>{} < Vector<T>{});

template <class T>
constexpr int64_t LANES = BYTES / sizeof(T);

template <class T>
constexpr int64_t vectors(int64_t elements) {
  return (elements + LANES<T> - 1) / LANES<T>;
}

template <class T>
Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

template <class T>
void store(T* to, Vector<T> x) {
  std::memcpy(to, &x, sizeof x);
}

// The first elements, 1 to LANES, and zeros; nothing behind them is read or written.
#if defined(__AVX512F__)
inline Vector<float> load(const float* from, int64_t number) {
  return _mm512_maskz_loadu_ps((1u << number) - 1, from);
}
inline Vector<double> load(const double* from, int64_t number) {
  return _mm512_maskz_loadu_pd((1u << number) - 1, from);
}
inline void store(float* to, Vector<float> x, int64_t number) {
  _mm512_mask_storeu_ps(to, (1u << number) - 1, x);
}
inline void store(double* to, Vector<double> x, int64_t number) {
  _mm512_mask_storeu_pd(to, (1u << number) - 1, x);
}
#elif defined(__AVX2__)
inline __m256i first_lanes(int64_t number, float) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(number)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m256i first_lanes(int64_t number, double) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(number), _mm256_setr_epi64x(0, 1, 2, 3));
}
inline Vector<float> load(const float* from, int64_t number) {
  return _mm256_maskload_ps(from, first_lanes(number, 0.0f));
}
inline Vector<double> load(const double* from, int64_t number) {
  return _mm256_maskload_pd(from, first_lanes(number, 0.0));
}
inline void store(float* to, Vector<float> x, int64_t number) {
  _mm256_maskstore_ps(to, first_lanes(number, 0.0f), x);
}
inline void store(double* to, Vector<double> x, int64_t number) {
  _mm256_maskstore_pd(to, first_lanes(number, 0.0), x);
}
#else
template <class T>
Vector<T> load(const T* from, int64_t number) {
  Vector<T> x = {};
  std::memcpy(&x, from, number * sizeof(T));
  return x;
}
template <class T>
void store(T* to, Vector<T> x, int64_t number) {
  std::memcpy(to, &x, number * sizeof(T));
}
#endif

// Which lanes have a number below this one.
template <class T>
Integers<T> lanes_below(int64_t number) {
  Integers<T> lanes;
  for (int lane = 0; lane < LANES<T>; ++lane) lanes[lane] = lane;
  return lanes < static_cast<std::decay_t<decltype(lanes[0])>>(number);
}

// f over a vector's first 2 HALF lanes: its halves together, then their halves, in as few steps as can be.
template <class T, class F, int HALF = LANES<T> / 2>
T of_lanes(Vector<T> x, F f) {
  for (int lane = 0; lane < HALF; ++lane) x[lane] = f(x[lane], x[lane + HALF]);
  if constexpr (HALF > 1) return of_lanes<T, F, HALF / 2>(x, f);
  return x[0];
}

template <class T>
T largest(Vector<T> x) {
  return of_lanes<T>(x, [](T a, T b) { return a > b ? a : b; });
}

template <class T>
T total(Vector<T> x) {
  return of_lanes<T>(x, [](T a, T b) { return a + b; });
}

// Memory for so many numbers, at a multiple of a vector's size. A thread takes again what it gave back, for
// the system takes long to give memory; what lies there is what was left there.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size) {
    auto& spare = spares();
    const auto fits = std::find_if(spare.begin(), spare.end(), [=](const Block& block) { return block.size >= size; });
    if (fits == spare.end()) {
      block_ = Block(size);
    } else {
      block_ = std::move(*fits);
      spare.erase(fits);
    }
  }
  ~Scratch() {
    if (block_.size <= LARGEST && spares().size() < BLOCKS) spares().push_back(std::move(block_));
  }
  Scratch(const Scratch&) = delete;
  T* begin() const { return block_.data.get(); }

 private:
  static constexpr std::align_val_t ALIGNMENT{BYTES};
  static constexpr int64_t LARGEST = 1 << 20;  // Numbers that a thread keeps.
  static constexpr size_t BLOCKS = 8;
  struct Free {
    void operator()(T* data) const { ::operator delete(data, ALIGNMENT); }
  };
  struct Block {
    explicit Block(int64_t numbers = 0)
        : size(numbers),
          data(numbers ? static_cast<T*>(::operator new(numbers * sizeof(T), ALIGNMENT)) : nullptr) {}
    int64_t size;
    std::unique_ptr<T, Free> data;
  };
  static std::vector<Block>& spares() {
    static thread_local std::vector<Block> blocks;
    return blocks;
  }
  Block block_;
};

// A matrix whose element (i, j) is data[i * row + j * column].
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column = 1;
  Matrix below(int64_t i) const { return {data + i * row, row, column}; }
};

// ROWS × VECTORS of a b; b's rows and the result's lie in one piece. The last vector has `number` elements.
template <class T, int ROWS, int VECTORS>
void block_product(Matrix<T> a, Matrix<T> b, T* y, int64_t y_row, int64_t inner, int64_t number) {
  constexpr int LAST = VECTORS - 1;
  Vector<T> sums[ROWS * VECTORS] = {};
  for (int64_t k = 0; k < inner; ++k) {
    Vector<T> right[VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < LAST; ++i) right[i] = load(b.data + k * b.row + i * LANES<T>);
    right[LAST] = load(b.data + k * b.row + LAST * LANES<T>, number);
    // One loop, not two, or compilers do not hold the sums in registers.
#pragma GCC unroll 32
    for (int i = 0; i < ROWS * VECTORS; ++i) {
      sums[i] += a.data[i / VECTORS * a.row + k * a.column] * right[i % VECTORS];
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < ROWS * VECTORS; ++i) {
    T* to = y + i / VECTORS * y_row + i % VECTORS * LANES<T>;
    if (i % VECTORS < LAST) {
      store(to, sums[i]);
    } else {
      store(to, sums[i], number);
    }
  }
}

template <class T, int ROWS>
void row_product(Matrix<T> a, Matrix<T> b, T* y, int64_t y_row, int64_t inner, int64_t columns) {
  while (columns > 0) {
    const int64_t remaining = vectors<T>(columns);
    const int64_t taken = remaining >= BLOCK_VECTORS ? BLOCK_VECTORS : remaining >= 2 ? 2 : 1;
    const int64_t number = std::min(columns - (taken - 1) * LANES<T>, LANES<T>);
    if (taken == BLOCK_VECTORS) {
      block_product<T, ROWS, BLOCK_VECTORS>(a, b, y, y_row, inner, number);
    } else if (taken == 2) {
      block_product<T, ROWS, 2>(a, b, y, y_row, inner, number);
    } else {
      block_product<T, ROWS, 1>(a, b, y, y_row, inner, number);
    }
    b.data += taken * LANES<T>;
    y += taken * LANES<T>;
    columns -= taken * LANES<T>;
  }
}

// y = a b, of at most BLOCK_ROWS rows.
template <class T>
void product(Matrix<T> a, Matrix<T> b, T* y, int64_t y_row, int64_t rows, int64_t inner, int64_t columns) {
  switch (rows) {
    case 1: return row_product<T, 1>(a, b, y, y_row, inner, columns);
    case 2: return row_product<T, 2>(a, b, y, y_row, inner, columns);
    case 3: return row_product<T, 3>(a, b, y, y_row, inner, columns);
    case 4: return row_product<T, 4>(a, b, y, y_row, inner, columns);
    case 5: return row_product<T, 5>(a, b, y, y_row, inner, columns);
    case 6: return row_product<T, 6>(a, b, y, y_row, inner, columns);
  }
}

// to[j * to_row + i] = from[i * from_row + j]
template <class T>
void transpose(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t rows, int64_t columns) {
  int64_t row = 0;
#if defined(__SSE__)
  if constexpr (sizeof(T) == 4) {
    for (; row + 4 <= rows; row += 4) {
      const T* four = from + row * from_row;
      int64_t column = 0;
      for (; column + 4 <= columns; column += 4) {
        __m128 a = _mm_loadu_ps(four + column), b = _mm_loadu_ps(four + from_row + column);
        __m128 c = _mm_loadu_ps(four + 2 * from_row + column), d = _mm_loadu_ps(four + 3 * from_row + column);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        T* there = to + column * to_row + row;
        _mm_storeu_ps(there, a);
        _mm_storeu_ps(there + to_row, b);
        _mm_storeu_ps(there + 2 * to_row, c);
        _mm_storeu_ps(there + 3 * to_row, d);
      }
      for (; column < columns; ++column) {
        for (int i = 0; i < 4; ++i) to[column * to_row + row + i] = four[i * from_row + column];
      }
    }
  }
#endif
  for (; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) to[column * to_row + row] = from[row * from_row + column];
  }
}

}  // namespace mnmt
