// Matrix products too small for the libraries' preparations: y = a bᵀ, for each block of rows in registers.

#include "small_products.h"
#include "vector.h"

namespace mnmt {

constexpr int64_t BLOCKS = 16;  // of a part

// y = a b, of any number of rows.
template <class T>
void product_of(Matrix<T> a, Matrix<T> b, T* y, int64_t rows, int64_t inner, int64_t columns, int64_t part,
                int64_t threads) {
  for_parts(rows, part, threads, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row += BLOCK_ROWS) {
      product(a.below(row), b, y + row * columns, columns, std::min<int64_t>(BLOCK_ROWS, last - row), inner,
              columns);
    }
  });
}

// The share of the lanes of vectors that a row of `columns` elements fills.
template <class T>
double filled(int64_t columns) {
  return double(columns) / double(vectors<T>(columns) * LANES<T>);
}

// y = a bᵀ; a's element (i, k) is a[i * a_row + k * a_column], and b's likewise.
template <class T>
void product(const T* a, const T* b, T* y, int64_t a_row, int64_t a_column, int64_t b_row, int64_t b_column,
             int64_t rows, int64_t inner, int64_t columns, int64_t threads) {
  if (b_row != 1) {
    Scratch<T> transposed(inner * columns);
    transpose(b, b_row, transposed.begin(), columns, columns, inner);
    product_of<T>({a, a_row, a_column}, {transposed.begin(), columns}, y, rows, inner, columns,
                  BLOCKS * BLOCK_ROWS, threads);
  } else if (a_row == 1 && filled<T>(columns) < filled<T>(rows)) {
    // Both are tables of tokens: the transposed result fills more lanes.
    Scratch<T> transposed(rows * columns);
    product_of<T>({b, 1, b_column}, {a, a_column}, transposed.begin(), columns, inner, rows, BLOCK_ROWS, threads);
    transpose(transposed.begin(), rows, y, columns, columns, rows);
  } else {
    product_of<T>({a, a_row, a_column}, {b, b_column}, y, rows, inner, columns,
                  a_row == 1 ? BLOCK_ROWS : BLOCKS * BLOCK_ROWS, threads);
  }
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                                          \
  (const T* a, const T* b, T* y, int64_t a_row, int64_t a_column, int64_t b_row, int64_t b_column, int64_t rows, \
   int64_t inner, int64_t columns, int64_t threads)
MNMT_EXPORT(product, PARAMETERS, (a, b, y, a_row, a_column, b_row, b_column, rows, inner, columns, threads))
