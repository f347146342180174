// Products y = x Wᵀ of few rows with matrices that are laid out for them once, in panels of whole vectors.

#pragma once

#include "small_products.h"
#include "vector.h"

namespace mnmt {

// Columns of a panel: of every row of Wᵀ, so many numbers lie together.
template <class T>
constexpr int64_t PANEL = BLOCK_VECTORS * LANES<T>;

template <class T>
constexpr int64_t panels(int64_t columns) {
  return (columns + PANEL<T> - 1) / PANEL<T>;
}

// weight: (columns, inner). packed: (panels, inner, PANEL), zero behind the last column.
template <class T>
void pack(const T* weight, T* packed, int64_t columns, int64_t inner, int64_t threads) {
  for_parts(panels<T>(columns), 1, threads, [=](int64_t panel, int64_t) {
    T* to = packed + panel * inner * PANEL<T>;
    const int64_t first = panel * PANEL<T>, number = std::min(PANEL<T>, columns - first);
    if (number < PANEL<T>) std::fill(to, to + inner * PANEL<T>, T(0));
    transpose(weight + first * inner, inner, to, PANEL<T>, number, inner);
  });
}

// y = x Wᵀ + bias + residual, the last two where they are not null; y may be the residual.
template <class T>
struct PackedMap {
  const T *packed, *bias;
  int64_t inner, columns;

  void operator()(const T* x, int64_t x_row, T* y, int64_t y_row, int64_t rows, const T* residual,
                  int64_t threads) const {
    // Rows that are computed with a panel while it is in the cache.
    const int64_t together = 16 * BLOCK_ROWS, groups = (rows + together - 1) / together;
    for_parts(panels<T>(columns) * groups, 1, threads, [=, *this](int64_t part, int64_t) {
      const int64_t panel = part / groups, first = part % groups * together;
      panel_product(panel, x, x_row, y, y_row, first, std::min(rows, first + together), residual);
    });
  }

 private:
  void panel_product(int64_t panel, const T* x, int64_t x_row, T* y, int64_t y_row, int64_t row, int64_t end,
                     const T* residual) const {
    const int64_t column = panel * PANEL<T>, number = std::min(PANEL<T>, columns - column);
    alignas(BYTES) T block[BLOCK_ROWS * PANEL<T>];
    for (; row < end; row += BLOCK_ROWS) {
      const int64_t rows = std::min<int64_t>(BLOCK_ROWS, end - row);
      product<T>({x + row * x_row, x_row}, {packed + panel * inner * PANEL<T>, PANEL<T>}, block, PANEL<T>, rows,
                 inner, PANEL<T>);
      for (int64_t i = 0; i < rows; ++i) {
        T* to = y + (row + i) * y_row + column;
        const T* from = block + i * PANEL<T>;
        if (residual) {
          const T* added = residual + (row + i) * y_row + column;
          for (int64_t j = 0; j < number; ++j) to[j] = from[j] + added[j];
        } else {
          for (int64_t j = 0; j < number; ++j) to[j] = from[j];
        }
        if (bias) {
          for (int64_t j = 0; j < number; ++j) to[j] += bias[column + j];
        }
      }
    }
  }
};

}  // namespace mnmt
