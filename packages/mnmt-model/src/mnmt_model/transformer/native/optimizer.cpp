// Clipping of gradients, and Adafactor's steps (Shazeer & Stern 2018), of all parameters in one call.

#include <vector>

#include "vector.h"

namespace mnmt {

constexpr int64_t ELEMENTS = 1 << 13;  // of a part
constexpr int64_t MOST_PARTS = 64;     // of a matrix, each of which has sums of its columns

// Σ f(i) over [0, number), in an order that does not depend on the threads.
template <class F>
double sum_of(int64_t number, int64_t threads, F f) {
  std::vector<double> sums((number + ELEMENTS - 1) / ELEMENTS);
  for_parts(number, ELEMENTS, threads, [&](int64_t first, int64_t last) {
    sums[first / ELEMENTS] = sum_over<float>(first, last, f);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <class F>
void for_elements(int64_t number, int64_t threads, F f) {
  for_parts(number, ELEMENTS, threads, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  });
}

inline double sum_of_squares(const float* x, int64_t number, int64_t threads) {
  return sum_of(number, threads, [=](int64_t i) { return x[i] * x[i]; });
}

// Scales gradients to a norm of at most `most`, unless that is 0; writes the norm before.
// gradients: (tensors, 2), address and number of elements.
inline void clip_gradients(float* norm, const int64_t* gradients, int64_t tensors, double most,
                           int64_t threads) {
  double square = 0;
  for (int64_t i = 0; i < tensors; ++i) {
    square += sum_of_squares(reinterpret_cast<const float*>(gradients[2 * i]), gradients[2 * i + 1], threads);
  }
  *norm = float(std::sqrt(square));
  const float factor = float(most / (std::sqrt(square) + 1e-6));
  // A norm that is no number makes the gradients none either, as in torch.
  if (most == 0 || factor >= 1) return;
  for (int64_t i = 0; i < tensors; ++i) {
    float* gradient = reinterpret_cast<float*>(gradients[2 * i]);
    for_elements(gradients[2 * i + 1], threads, [=](int64_t j) { gradient[j] *= factor; });
  }
}

constexpr float EPSILON_GRADIENT = 1e-30f;
constexpr double EPSILON_PARAMETER = 1e-3;

// One matrix, or a tensor of one row.
struct Update {
  float* parameter;
  const float* gradient;
  float *row, *column;  // The second moments; `row` alone, of each element, where they are not factored.
  int64_t rows, columns;
  float weight;  // 1 - β2
  double rate;
  int64_t threads;

  int64_t size() const { return rows * columns; }

  // -lr · max(1e-3, RMS(θ)) / max(1, RMS(u)), of the sums of the squares of u.
  float step_size(double squares) const {
    const double scale = std::sqrt(sum_of_squares(parameter, size(), threads) / double(size()));
    return float(-rate * std::max(EPSILON_PARAMETER, scale) / std::max(1.0, std::sqrt(squares / double(size()))));
  }
};

// v ← β2 v + (1 - β2)(g² + 1e-30)
inline float moment(float old, float square, float weight) {
  return old + weight * (square + EPSILON_GRADIENT - old);
}

inline void update_unfactored(const Update& it) {
  float *v = it.row, *parameter = it.parameter;
  const float *g = it.gradient, weight = it.weight;
  const double squares = sum_of(it.size(), it.threads, [=](int64_t i) {
    v[i] = moment(v[i], g[i] * g[i], weight);
    return g[i] * g[i] / v[i];
  });
  const float scale = it.step_size(squares);
  for_elements(it.size(), it.threads, [=](int64_t i) { parameter[i] += scale * (g[i] / std::sqrt(v[i])); });
}

// Updates the mean squares of rows and columns.
inline void update_moments(const Update& it) {
  const int64_t part_rows = std::max<int64_t>(1, (it.rows + MOST_PARTS - 1) / MOST_PARTS);
  const int64_t parts = (it.rows + part_rows - 1) / part_rows;
  std::vector<float> sums(parts * it.columns);
  for_parts(it.rows, part_rows, it.threads, [&](int64_t first, int64_t last) {
    float* columns = sums.data() + first / part_rows * it.columns;
    for (int64_t row = first; row < last; ++row) {
      const float* g = it.gradient + row * it.columns;
      const float sum = sum_over<float>(0, it.columns, [=](int64_t i) {
        columns[i] += g[i] * g[i];
        return g[i] * g[i];
      });
      it.row[row] = moment(it.row[row], sum / float(it.columns), it.weight);
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < it.columns; ++i) sums[i] += sums[part * it.columns + i];
  }
  for (int64_t i = 0; i < it.columns; ++i) {
    it.column[i] = moment(it.column[i], sums[i] / float(it.rows), it.weight);
  }
}

// u = g · row_scale · column_scale
inline void update_factored(const Update& it) {
  update_moments(it);
  double mean = 0;
  for (int64_t i = 0; i < it.rows; ++i) mean += it.row[i];
  mean /= double(it.rows);
  std::vector<float> row_scales(it.rows), column_scales(it.columns);
  std::vector<double> squares(it.rows);
  for (int64_t i = 0; i < it.rows; ++i) row_scales[i] = float(std::sqrt(mean / it.row[i]));
  for (int64_t i = 0; i < it.columns; ++i) column_scales[i] = 1 / std::sqrt(it.column[i]);
  const int64_t part_rows = std::max<int64_t>(1, ELEMENTS / it.columns);
  for_parts(it.rows, part_rows, it.threads, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const float* g = it.gradient + row * it.columns;
      const float* scales = column_scales.data();
      const float sum = sum_over<float>(
          0, it.columns, [=](int64_t i) { return g[i] * scales[i] * (g[i] * scales[i]); });
      squares[row] = double(sum) * row_scales[row] * row_scales[row];
    }
  });
  double total = 0;
  for (const double square : squares) total += square;
  const float scale = it.step_size(total);
  for_parts(it.rows, part_rows, it.threads, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const float *g = it.gradient + row * it.columns, by = scale * row_scales[row];
      float* parameter = it.parameter + row * it.columns;
      for (int64_t i = 0; i < it.columns; ++i) parameter[i] += g[i] * by * column_scales[i];
    }
  });
}

// A parameter as Python describes it: a row of a table of 64-bit numbers. Without `column` the moments are not
// factored, and `row` has one of each element.
struct Parameter {
  float *values, *gradient, *row, *column, *step;
  int64_t matrices, rows, columns;
};

inline void adafactor(const Parameter* parameters, int64_t number, double rate, int64_t threads) {
  for (int64_t i = 0; i < number; ++i) {
    const Parameter& it = parameters[i];
    *it.step += 1;
    const float weight = float(std::pow(double(*it.step), -0.8));
    for (int64_t j = 0; j < it.matrices; ++j) {
      const int64_t first = j * it.rows * it.columns;
      Update update{it.values + first, it.gradient + first, it.row, it.column, it.rows,
                    it.columns,        weight,              rate,   threads};
      if (it.column) {
        update.row += j * it.rows;
        update.column += j * it.columns;
        update_factored(update);
      } else {
        update.row += first;
        update_unfactored(update);
      }
    }
  }
}

}  // namespace mnmt

extern "C" void clip_gradients_float32(float* norm, const int64_t* gradients, int64_t tensors, double most,
                                       int64_t threads) {
  mnmt::clip_gradients(norm, gradients, tensors, most, threads);
}

// parameters: (number, 8).
extern "C" void adafactor_int64(const int64_t* parameters, int64_t number, double rate, int64_t threads) {
  static_assert(sizeof(mnmt::Parameter) == 8 * sizeof(int64_t));
  mnmt::adafactor(reinterpret_cast<const mnmt::Parameter*>(parameters), number, rate, threads);
}
