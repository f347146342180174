// One step of decoding: the decoder's layers for one more token of every hypothesis.
//
// Keys and values of all tokens lie in rows of a table, where they stay. A hypothesis is a path: the rows of its
// tokens, so that nothing is copied when hypotheses branch.

#include "attended_rows.h"
#include "gated.h"
#include "packed_product.h"
#include "softmax.h"
#include "vector.h"

namespace mnmt {

// What Python lays into tables of addresses; packed matrices, and null for a bias that is not there.
template <class T>
struct Map {
  const T *packed, *bias;
};

template <class T>
struct Norm {
  const T *weight, *bias;
};

template <class T>
struct LayerWeights {
  Norm<T> attention_norm;
  Map<T> qkv, o;
  Norm<T> cross_norm;
  Map<T> cross_q, cross_o;
  Norm<T> feed_forward_norm;
  Map<T> wi, wo;
};

template <class T>
struct LayerMemory {
  T* targets;                                // (slots, 2 d_attention), keys and then values.
  const T *source_keys, *source_values;      // (sentences, heads, source_width, head_dim)
};

struct Sizes {
  int64_t layers, d_model, heads, head_dim, d_ff, gated, rms, pre, cross, rows, steps, first_slot, source_width,
      bias_width;
  int64_t d_attention() const { return heads * head_dim; }
  int64_t hidden() const { return (gated ? 2 : 1) * d_ff; }
};

template <class T>
struct Step {
  Sizes sizes;
  T scale, epsilon;
  const int32_t* paths;      // (rows, steps) slots; a row's own token is its last.
  const int32_t* sentences;  // (rows,)
  const int32_t* lengths;    // (sentences,) tokens of the source.
  const T* position_bias;    // (heads, bias_width) of distances bias_width - 1 to 0; null if there is none.
  T* workspace;              // (rows, max(4 d_attention, 3 d_ff)) for what a sublayer computes on the way.
  int64_t threads;

  template <class F>
  void for_rows(F f) const {
    for_parts(sizes.rows, 8, threads, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) f(row);
    });
  }

  void norm(const Norm<T>& norm, const T* x, T* y) const {
    const int64_t columns = sizes.d_model;
    for_rows([=, *this](int64_t row) { norm_row(norm, x + row * columns, y + row * columns, columns); });
  }

  void norm_row(const Norm<T>& norm, const T* x, T* y, int64_t columns) const {
    const T mean = sizes.rms ? T(0) : sum_over<T>(0, columns, [=](int64_t i) { return x[i]; }) / T(columns);
    const T variance = sum_over<T>(0, columns, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / T(columns);
    const T factor = T(1) / std::sqrt(variance + epsilon);
    for (int64_t i = 0; i < columns; ++i) y[i] = (x[i] - mean) * factor * norm.weight[i];
    if (norm.bias) {
      for (int64_t i = 0; i < columns; ++i) y[i] += norm.bias[i];
    }
  }

  void map(const Map<T>& map, int64_t inner, int64_t columns, const T* x, T* y, const T* residual = nullptr) const {
    PackedMap<T>{map.packed, map.bias, inner, columns}(x, inner, y, columns, sizes.rows, residual, threads);
  }

  // x + sublayer(norm(x)), or norm(x + sublayer(x)), in place. f(h, x, y) sets y to x + sublayer(h).
  template <class F>
  void residual(const Norm<T>& normal, T* x, T* scratch, F f) const {
    if (sizes.pre) {
      norm(normal, x, scratch);
      f(scratch, x, x);
    } else {
      f(x, x, scratch);
      norm(normal, scratch, x);
    }
  }

  void attention(const LayerWeights<T>& layer, const LayerMemory<T>& memory, T* x, T* scratch) const {
    const int64_t width = sizes.d_attention();
    T *qkv = workspace, *attended = workspace + sizes.rows * 3 * width;
    residual(layer.attention_norm, x, scratch, [&](const T* h, const T* added, T* y) {
      map(layer.qkv, sizes.d_model, 3 * width, h, qkv);
      T* to = memory.targets + sizes.first_slot * 2 * width;
      for_rows([=](int64_t row) {
        std::copy_n(qkv + (3 * row + 1) * width, 2 * width, to + 2 * row * width);
      });
      attend(qkv, 3 * width, memory, !sizes.cross, true, attended);
      map(layer.o, width, sizes.d_model, attended, y, added);
    });
  }

  void cross_attention(const LayerWeights<T>& layer, const LayerMemory<T>& memory, T* x, T* scratch) const {
    const int64_t width = sizes.d_attention();
    T *queries = workspace, *attended = workspace + sizes.rows * width;
    residual(layer.cross_norm, x, scratch, [&](const T* h, const T* added, T* y) {
      map(layer.cross_q, sizes.d_model, width, h, queries);
      attend(queries, width, memory, true, false, attended);
      map(layer.cross_o, width, sizes.d_model, attended, y, added);
    });
  }

  void feed_forward(const LayerWeights<T>& layer, T* x, T* scratch) const {
    const int64_t width = sizes.d_ff, hidden = sizes.hidden();
    T *maps = workspace, *active = sizes.gated ? workspace + sizes.rows * hidden : workspace;
    residual(layer.feed_forward_norm, x, scratch, [&](const T* h, const T* added, T* y) {
      map(layer.wi, sizes.d_model, hidden, h, maps);
      for_rows([=, *this](int64_t row) {
        const T* from = maps + row * hidden;
        T* to = active + row * width;
        if (sizes.gated) {
          gated_row<GELU, T>(from, from + width, to, width, NoDropout<T>());
        } else {
          for (int64_t i = 0; i < width; ++i) to[i] = std::max(from[i], T(0));
        }
      });
      map(layer.wo, width, sizes.d_model, active, y, added);
    });
  }

  // Attends from queries of all rows and heads to the source, the hypothesis' tokens, or both in one softmax.
  void attend(const T* queries, int64_t query_row, const LayerMemory<T>& memory, bool source, bool targets,
              T* y) const {
    const int64_t heads = sizes.heads, head_dim = sizes.head_dim;
    const int64_t keys = (source ? sizes.source_width : 0) + (targets ? sizes.steps : 0);
    const int64_t together = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, keys * head_dim));
    for_parts(sizes.rows * heads, together, threads, [=, *this](int64_t first, int64_t last) {
      Scratch<T> scores(vectors<T>(keys) * LANES<T>);
      for (int64_t part = first; part < last; ++part) {
        const int64_t row = part / heads, head = part % heads;
        const T* query = queries + row * query_row + head * head_dim;
        T* to = y + part * head_dim;
        attend_row(query, memory, row, head, source, targets, scores.begin(), to);
      }
    });
  }

  void attend_row(const T* query, const LayerMemory<T>& memory, int64_t row, int64_t head, bool source, bool targets,
                  T* scores, T* y) const {
    const int64_t head_dim = sizes.head_dim, slot = 2 * sizes.d_attention();
    const int64_t sentence = sentences[row], length = source ? lengths[sentence] : 0;
    const int64_t steps = targets ? sizes.steps : 0;
    const int64_t there = (sentence * sizes.heads + head) * sizes.source_width * head_dim;
    const int32_t* path = paths + row * sizes.steps;
    const T* keys = memory.targets + head * head_dim;
    const T* bias = targets && position_bias ? position_bias + (head + 1) * sizes.bias_width - steps : nullptr;
    const auto source_row = [=](const T* rows) { return [=](int64_t i) { return rows + there + i * head_dim; }; };
    const auto target_row = [=](const T* rows) { return [=](int64_t i) { return rows + path[i] * slot; }; };
    const auto source_key = source_row(memory.source_keys);
    const auto key = target_row(keys);
    for (int64_t i = 0; i < length; ++i) scores[i] = scale * dot(query, source_key(i), head_dim);
    for (int64_t i = 0; i < steps; ++i) {
      scores[length + i] = scale * dot(query, key(i), head_dim) + (bias ? bias[i] : T(0));
    }
    softmax<T>(scores, length + steps, vectors<T>(length + steps) * LANES<T>, nullptr, T(1));
    std::fill(y, y + head_dim, T(0));
    add_rows(scores, length, source_row(memory.source_values), y, head_dim);
    add_rows(scores + length, steps, target_row(keys + sizes.d_attention()), y, head_dim);
  }
};

// x: (rows, d_model), embedded tokens, and then the top states. layers and memory: a row of addresses a layer.
// workspace: (rows, d_model + max(4 d_attention, 3 d_ff)); memory that is lacking is Python's to tell.
template <class T>
void decoding_step(T* x, const int64_t* layers, const int64_t* memory, const int64_t* sizes, const T* last_norm,
                   const T* last_norm_bias, const int32_t* paths, const int32_t* sentences, const int32_t* lengths,
                   const T* position_bias, T* workspace, double scale, double epsilon, int64_t threads) {
  Step<T> step{{}, T(scale), T(epsilon), paths, sentences, lengths, position_bias, nullptr, threads};
  std::memcpy(&step.sizes, sizes, sizeof step.sizes);
  const auto* weights = reinterpret_cast<const LayerWeights<T>*>(layers);
  const auto* places = reinterpret_cast<const LayerMemory<T>*>(memory);
  T* scratch = workspace;
  step.workspace = workspace + step.sizes.rows * step.sizes.d_model;
  for (int64_t i = 0; i < step.sizes.layers; ++i) {
    step.attention(weights[i], places[i], x, scratch);
    if (step.sizes.cross) step.cross_attention(weights[i], places[i], x, scratch);
    step.feed_forward(weights[i], x, scratch);
  }
  if (last_norm) step.norm({last_norm, last_norm_bias}, x, x);
}

// logits: (rows, columns), the log-probabilities of the products of states (rows, inner) with a packed matrix.
template <class T>
void log_probs(const T* states, const T* packed, T* logits, int64_t rows, int64_t inner, int64_t columns,
               int64_t threads) {
  PackedMap<T>{packed, nullptr, inner, columns}(states, inner, logits, columns, rows, nullptr, threads);
  for_parts(rows, 1, threads, [=](int64_t row, int64_t) {
    T* x = logits + row * columns;
    T most = x[0];
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < columns; ++i) most = std::max(most, x[i]);
    const T sum = sum_over<T>(0, columns, [=](int64_t i) { return exponential(x[i] - most); });
    const T norm = most + std::log(sum);
    for (int64_t i = 0; i < columns; ++i) x[i] -= norm;
  });
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                                               \
  (T* x, const int64_t* layers, const int64_t* memory, const int64_t* sizes, const T* last_norm,                   \
   const T* last_norm_bias, const int32_t* paths, const int32_t* sentences, const int32_t* lengths,                \
   const T* position_bias, T* workspace, double scale, double epsilon, int64_t threads)
MNMT_EXPORT(decoding_step, PARAMETERS,
            (x, layers, memory, sizes, last_norm, last_norm_bias, paths, sentences, lengths, position_bias, workspace,
             scale, epsilon, threads))
#undef PARAMETERS

#define PARAMETERS(T) \
  (const T* states, const T* packed, T* logits, int64_t rows, int64_t inner, int64_t columns, int64_t threads)
MNMT_EXPORT(log_probs, PARAMETERS, (states, packed, logits, rows, inner, columns, threads))
#undef PARAMETERS

#define PARAMETERS(T) (const T* weight, T* packed, int64_t columns, int64_t inner, int64_t threads)
MNMT_EXPORT(pack, PARAMETERS, (weight, packed, columns, inner, threads))
