// The products of experts: of each expert's rows, which follow those of the expert before, with its matrix. Sums stay
// in registers to their end; the matrix on the right is laid out anew, panel by panel, by the core that needs it.

#include "panels.h"

namespace mnmt {

constexpr int64_t GROUP = 4;         // Panels that a core lays out at a time.
constexpr int64_t STRIP_BLOCKS = 4;  // Blocks of transposed rows that it lays out at a time.

struct Stack {
  const int32_t* ends;  // The row after each expert's last.
  int64_t number, inner, columns, threads;
};

// An expert's rows, and a group of its result's columns.
struct Part {
  int64_t expert, first, end, from, to;
};

// Calls f(part) for groups of panels of all experts.
template <class D, class F>
void for_groups(const Stack& stack, F f) {
  const int64_t width = GROUP * D::WIDTH, groups = (stack.columns + width - 1) / width;
  for_parts(stack.number * groups, 1, stack.threads, [=](int64_t number, int64_t) {
    const int64_t expert = number / groups, from = number % groups * width;
    f(Part{expert, expert ? stack.ends[expert - 1] : 0, stack.ends[expert], from,
           std::min(stack.columns, from + width)});
#if defined(__SSE__)
    _mm_sfence();  // Stores past the caches are seen by other cores only after this.
#endif
  });
}

// y_e = x_e w_e, or x_e w_eᵀ; x is (rows, inner), y (rows, columns), w (number, inner, columns) or its transpose.
template <class S>
void experts_product(const S* x, const S* w, S* y, const Stack& stack, bool transposed) {
  using D = Dot<S>;
  const int64_t inner = stack.inner, columns = stack.columns, steps = D::steps(inner);
  for_groups<D>(stack, [=](const Part& part) {
    if (part.first == part.end) return;
    const S* matrix = w + part.expert * inner * columns;
    const auto* left = reinterpret_cast<const typename D::Left*>(x + part.first * inner);
    Scratch<typename D::Right> panel(steps * D::WIDTH);
    for (int64_t column = part.from; column < part.to; column += D::WIDTH) {
      const int64_t width = std::min(D::WIDTH, part.to - column);
      if (transposed) {
        D::pack_transposed(matrix + column * inner, inner, inner, width, panel.begin());
      } else {
        D::pack(matrix + column, columns, inner, width, panel.begin());
      }
      rows_product<D>({left, inner / D::DEPTH}, panel.begin(), steps, y + part.first * columns + column, columns,
                      part.end - part.first, width);
    }
  });
}

// y_e = x_eᵀ g_e; x is (rows, inner), g (rows, columns), y (number, inner, columns).
template <class S, class Y>
void experts_gradient(const S* x, const S* g, Y* y, const Stack& stack) {
  using D = Dot<S>;
  const int64_t inner = stack.inner, columns = stack.columns, strip = STRIP_BLOCKS * D::ROWS;
  for_groups<D>(stack, [=](const Part& part) {
    const int64_t depth = part.end - part.first, steps = D::steps(depth);
    Scratch<typename D::Right> panels(GROUP * steps * D::WIDTH);
    Scratch<typename D::Left> left(steps * strip);
    for (int64_t column = part.from; column < part.to; column += D::WIDTH) {
      D::pack(g + part.first * columns + column, columns, depth, std::min(D::WIDTH, part.to - column),
              panels.begin() + (column - part.from) * steps);
    }
    for (int64_t row = 0; row < inner; row += strip) {
      const int64_t rows = std::min(strip, inner - row);
      D::pack_left(x + part.first * inner + row, inner, depth, rows, strip, left.begin());
      for (int64_t column = part.from; column < part.to; column += D::WIDTH) {
        rows_product<D>({left.begin(), 1, strip}, panels.begin() + (column - part.from) * steps, steps,
                        y + (part.expert * inner + row) * columns + column, columns, rows,
                        std::min(D::WIDTH, part.to - column));
      }
    }
  });
}

// The result's numbers are those of x, or of the type in which sums are computed.
template <class S>
void experts_gradient_of(const S* x, const S* g, void* y, const Stack& stack, bool has_type_of_sums) {
  if (has_type_of_sums) {
    experts_gradient(x, g, static_cast<Computed<S>*>(y), stack);
  } else {
    experts_gradient(x, g, static_cast<S*>(y), stack);
  }
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                                   \
  (const T* x, const T* w, T* y, const int32_t* ends, int64_t number, int64_t inner, int64_t columns,   \
   int64_t transposed, int64_t threads)
MNMT_EXPORT_ALL(experts_product, PARAMETERS, (x, w, y, {ends, number, inner, columns, threads}, transposed))
#undef PARAMETERS

#define PARAMETERS(T)                                                                                   \
  (const T* x, const T* g, void* y, const int32_t* ends, int64_t number, int64_t inner, int64_t columns, \
   int64_t has_type_of_sums, int64_t threads)
MNMT_EXPORT_ALL(experts_gradient_of, PARAMETERS, (x, g, y, {ends, number, inner, columns, threads}, has_type_of_sums))
