// Softmax and cross-entropy of a table of logits, with label smoothing and z-loss.

#include <vector>

#include "vector.h"

namespace mnmt {

// Logits of a part, about.
constexpr int64_t PART = 1 << 14;

template <class T>
T highest_of(const T* row, int64_t columns) {
  // A compiler makes vectors of the inner loop, but not of a maximum, whose order matters to NaNs.
  T lanes[16];
  for (int64_t lane = 0; lane < 16; ++lane) lanes[lane] = row[0];
  int64_t i = 0;
  for (; i + 16 <= columns; i += 16) {
    for (int64_t lane = 0; lane < 16; ++lane) {
      lanes[lane] = row[i + lane] > lanes[lane] ? row[i + lane] : lanes[lane];
    }
  }
  for (; i < columns; ++i) lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
  return *std::max_element(lanes, lanes + 16);
}

// A row's log-normaliser; e^(logit - highest) is written over its logits, and their sum returned too.
template <class T>
T log_normaliser(T* row, int64_t columns, T& sum) {
  const T highest = highest_of(row, columns);
  sum = sum_over<T>(0, columns, [=](int64_t i) { return row[i] = exponential(row[i] - highest); });
  return highest + std::log(sum);
}

// Writes -log p of each target to `nats` and the weighted objective to `objective`, and the objective's gradient
// over the logits.
template <class T>
void cross_entropy(T* logits, const int64_t* targets, const float* weights, float* nats, float* objective,
                    int64_t rows, int64_t columns, double smoothing, double z_loss, int64_t threads) {
  std::vector<double> losses(rows);
  for_parts(rows, std::max<int64_t>(1, PART / columns), threads, [=, &losses](int64_t first, int64_t last) {
    for (int64_t number = first; number < last; ++number) {
      T* row = logits + number * columns;
      const T target = row[targets[number]];
      T sum;
      const T mean = smoothing ? sum_over<T>(0, columns, [=](int64_t i) { return row[i]; }) / T(columns) : 0;
      const T normaliser = log_normaliser(row, columns, sum);
      const T weight = weights[number];
      nats[number] = float(normaliser - target);
      losses[number] =
          weight * (normaliser - (1 - smoothing) * target - smoothing * mean + z_loss * normaliser * normaliser);
      const T scale = weight * (1 + 2 * z_loss * normaliser) / sum;
      const T share = weight * smoothing / columns;
      for (int64_t i = 0; i < columns; ++i) row[i] = row[i] * scale - share;
      row[targets[number]] -= (1 - smoothing) * weight;
    }
  });
  double total = 0;
  for (const double loss : losses) total += loss;
  *objective = float(total);
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                                 \
  (T * logits, const int64_t* targets, const float* weights, float* nats, float* objective, int64_t rows, \
   int64_t columns, double smoothing, double z_loss, int64_t threads)
MNMT_EXPORT(cross_entropy, PARAMETERS,
            (logits, targets, weights, nats, objective, rows, columns, smoothing, z_loss, threads))
