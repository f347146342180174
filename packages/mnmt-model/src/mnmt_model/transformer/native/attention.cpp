// Attention within sentences whose tokens lie one after the other, without padding:
// y = dropout(softmax(scale q kᵀ + bias)) v, for each sentence and head.
//
// A head's weights are a matrix of rows of whole vectors. That of a dropped key is written with a minus, so that
// the gradient needs no random numbers. A sentence's weights begin at heads × padded width × its first query.

#include "small_products.h"
#include "softmax.h"
#include "vector.h"

namespace mnmt {

// A row of weights has memory for whole vectors of so many numbers: MAX_LANES of ragged_attention.py.
static_assert(LANES<float> <= 16);

// One sentence's rows in one head, and its weights.
template <class T>
struct Head {
  Matrix<T> q, k, v;
  int64_t queries, keys, row;  // A row of weights has so many numbers.
  bool causal;
  int64_t number, query;  // The head's, and the first query's among all.

  // The keys that the queries before number `end` see, and how many numbers the vectors with them have.
  int64_t seen(int64_t end) const { return causal ? std::min(keys, end) : keys; }
  int64_t whole(int64_t end) const { return vectors<T>(seen(end)) * LANES<T>; }
  // Of the queries that see a key, the first is in the block of the key's own number.
  int64_t first_query(int64_t key) const { return causal ? std::min(key, queries) : 0; }
};

template <class T>
struct Layout {
  const T *q, *k, *v;
  const int64_t *query_starts, *key_starts;
  int64_t heads, head_dim, query_row, key_row, width;
  bool causal;

  int64_t padded() const { return vectors<T>(width) * LANES<T>; }
  int64_t queries(int64_t sentence) const { return query_starts[sentence + 1] - query_starts[sentence]; }
  Head<T> head(int64_t sentence, int64_t number) const {
    const int64_t keys = key_starts[sentence + 1] - key_starts[sentence], there = key_of(sentence, number);
    return {{q + query_of(sentence, number), query_row}, {k + there, key_row}, {v + there, key_row},
            queries(sentence), keys, vectors<T>(keys) * LANES<T>, causal, number, query_starts[sentence]};
  }
  // Where a sentence's rows begin in one head: among queries, among keys, among results, among weights.
  int64_t query_of(int64_t sentence, int64_t number) const {
    return query_starts[sentence] * query_row + number * head_dim;
  }
  int64_t key_of(int64_t sentence, int64_t number) const {
    return key_starts[sentence] * key_row + number * head_dim;
  }
  int64_t result_of(int64_t sentence, int64_t number) const {
    return (query_starts[sentence] * heads + number) * head_dim;
  }
  int64_t weights_of(int64_t sentence, const Head<T>& head) const {
    return query_starts[sentence] * heads * padded() + head.number * head.queries * head.row;
  }
};

template <class T>
struct WeightDropout {
  uint32_t threshold;  // Of 2³²; 0 is none at all.
  uint64_t seed;
  T factor() const { return threshold ? T(4294967296.0 / threshold) : T(1); }
};

typedef uint32_t Bits __attribute__((vector_size(BYTES)));

// Which of the keys from `first` on stay.
template <class T>
Integers<T> staying(uint64_t seed, int64_t first, uint32_t threshold) {
  Bits numbers;
  for (uint32_t lane = 0; lane < LANES<float>; ++lane) numbers[lane] = lane;
  numbers += static_cast<uint32_t>(first) + static_cast<uint32_t>(seed);
  const Integers<float> stays = mix_bits(numbers, static_cast<uint32_t>(seed >> 32)) < threshold;
  if constexpr (sizeof(T) == sizeof(float)) return stays;
  Integers<T> y;
  for (int lane = 0; lane < LANES<T>; ++lane) y[lane] = stays[lane];
  return y;
}

// Gives the weights of dropped keys a minus; `kept` gets what is left.
template <class T>
void drop(T* weights, T* kept, int64_t padded, int64_t row, const WeightDropout<T>& dropout) {
  const uint64_t high = random_bits(dropout.seed, row), low = random_bits(~dropout.seed, row);
  const uint64_t seed = high << 32 | low;
  const T factor = dropout.factor();
  for (int64_t key = 0; key < padded; key += LANES<T>) {
    const Integers<T> stays = staying<T>(seed, key, dropout.threshold);
    const Vector<T> weight = load(weights + key);
    store<T>(kept + key, weight * (stays ? Vector<T>{} + factor : Vector<T>{}));  // NaN stays.
    store<T>(weights + key, stays ? weight : -weight);
  }
}

// One sentence in one head. `bias` is that of distance 0, or null; `keys` and `kept` are memory.
template <class T>
void attend(const Layout<T>& all, const Head<T>& head, const T* bias, T scale, const WeightDropout<T>& dropout,
            T* weights, T* y, T* keys, T* kept) {
  const int64_t row = head.row, y_row = all.heads * all.head_dim;
  transpose(head.k.data, head.k.row, keys, row, head.keys, all.head_dim);
  for (int64_t i = 0; i < head.queries; i += BLOCK_ROWS) {
    const int64_t rows = std::min<int64_t>(BLOCK_ROWS, head.queries - i), whole = head.whole(i + rows);
    T* block = weights + i * row;
    product<T>(head.q.below(i), {keys, row}, block, row, rows, all.head_dim, whole);
    for (int64_t r = 0; r < rows; ++r) {
      T* one = block + r * row;
      softmax<T>(one, head.seen(i + r + 1), whole, bias ? bias - i - r : nullptr, scale);
      if (dropout.threshold) {
        drop(one, kept + r * row, whole, (head.query + i + r) * all.heads + head.number, dropout);
      }
    }
    const Matrix<T> left{dropout.threshold ? kept : block, row};
    product<T>(left, head.v, y + i * y_row, y_row, rows, head.seen(i + rows), all.head_dim);
  }
}

// Parts are of `size` sentences.
template <class T>
void attention(const T* q, const T* k, const T* v, const T* bias, const int64_t* query_starts,
               const int64_t* key_starts, T* y, T* weights, int64_t size, int64_t sentences, int64_t heads,
               int64_t head_dim, int64_t query_row, int64_t key_row, int64_t width, int64_t causal, double scale,
               int64_t threshold, int64_t seed, int64_t threads) {
  const Layout<T> all{q,        k,         v,       query_starts, key_starts, heads,
                      head_dim, query_row, key_row, width,        causal != 0};
  const WeightDropout<T> dropout{static_cast<uint32_t>(threshold), static_cast<uint64_t>(seed)};
  const int64_t distances = 2 * width - 1, bias_row = distances + LANES<T>;
  for_parts(sentences, size, threads, [=](int64_t first, int64_t last) {
    const Scratch<T> keys(head_dim * all.padded()), kept(BLOCK_ROWS * all.padded());
    const Scratch<T> biases(bias ? heads * bias_row : 0);
    if (bias) transpose(bias, heads, biases.begin(), bias_row, distances, heads);
    for (int64_t sentence = first; sentence < last; ++sentence) {
      for (int64_t number = 0; number < heads; ++number) {
        const Head<T> head = all.head(sentence, number);
        const T* middle = bias ? biases.begin() + number * bias_row + width - 1 : nullptr;
        attend(all, head, middle, T(scale), dropout, weights + all.weights_of(sentence, head),
               y + all.result_of(sentence, number), keys.begin(), kept.begin());
      }
    }
  });
}

// The gradient of a row of scores by that of its weights, in place; `kept` gets the weights after dropout.
// Where a weight is 0, such as behind the last key, anything may stand in place of its gradient.
template <class T>
void softmax_gradient(T* gradient, const T* weights, T* kept, int64_t padded, T factor) {
  Vector<T> dots = {};
  for (int64_t key = 0; key < padded; key += LANES<T>) {
    const Vector<T> weight = load(weights + key), left = weight > T(0) ? weight * factor : Vector<T>{};
    const Vector<T> product = weight > T(0) ? left * load(gradient + key) : Vector<T>{};
    store(kept + key, left);
    store(gradient + key, product);
    dots += product;
  }
  const T dot = total<T>(dots);
  for (int64_t key = 0; key < padded; key += LANES<T>) {
    const Vector<T> weight = load(weights + key), size = weight > T(0) ? weight : -weight;
    store<T>(gradient + key, load(gradient + key) - size * dot);
  }
}

// Adds a row of the scores' gradient to that of the bias, unless it is null, and scales it.
template <class T>
void add_and_scale(T* gradient, T* sums, int64_t padded, T scale) {
  for (int64_t key = 0; key < padded; key += LANES<T>) {
    const Vector<T> one = load(gradient + key);
    if (sums) store<T>(sums + key, load(sums + key) + one);
    store<T>(gradient + key, one * scale);
  }
}

// Gradients by the queries of one sentence in one head; `scores` gets those by its scores, `kept` its weights
// after dropout, and `biases` the sum of the former. `values` is memory.
template <class T>
void query_gradient(const Layout<T>& all, const Head<T>& head, Matrix<T> grad, const T* weights, T scale, T factor,
                    T* grad_q, T* scores, T* kept, T* biases, T* values) {
  const int64_t row = head.row;
  transpose(head.v.data, head.v.row, values, row, head.keys, all.head_dim);
  for (int64_t i = 0; i < head.queries; i += BLOCK_ROWS) {
    const int64_t rows = std::min<int64_t>(BLOCK_ROWS, head.queries - i), whole = head.whole(i + rows);
    T* block = scores + i * row;
    product<T>(grad.below(i), {values, row}, block, row, rows, all.head_dim, whole);
    for (int64_t r = i; r < i + rows; ++r) {
      softmax_gradient(scores + r * row, weights + r * row, kept + r * row, whole, factor);
      add_and_scale(scores + r * row, biases ? biases + r * all.padded() : nullptr, whole, scale);
    }
    product<T>({block, row}, head.k, grad_q + i * head.q.row, head.q.row, rows, head.seen(i + rows), all.head_dim);
  }
}

// Gradients by its keys and values.
template <class T>
void key_gradient(const Layout<T>& all, const Head<T>& head, Matrix<T> grad, const T* scores, const T* kept,
                  T* grad_k, T* grad_v) {
  const int64_t row = head.row;
  for (int64_t j = 0; j < head.keys; j += BLOCK_ROWS) {
    const int64_t rows = std::min<int64_t>(BLOCK_ROWS, head.keys - j), i = head.first_query(j);
    const int64_t to = j * head.k.row, from = i * row + j, inner = head.queries - i;
    product<T>({scores + from, 1, row}, head.q.below(i), grad_k + to, head.k.row, rows, inner, all.head_dim);
    product<T>({kept + from, 1, row}, grad.below(i), grad_v + to, head.k.row, rows, inner, all.head_dim);
  }
}

// The sums over all queries of the gradient at each distance, (distances, heads).
template <class T>
void by_distance(const Layout<T>& all, const T* biases, T* sums) {
  std::fill_n(sums, (2 * all.width - 1) * all.heads, T(0));
  for (int64_t number = 0; number < all.heads; ++number) {
    for (int64_t i = 0; i < all.width; ++i) {
      const T* row = biases + (number * all.width + i) * all.padded();
      T* to = sums + (all.width - 1 - i) * all.heads + number;
      for (int64_t j = 0; j < all.width; ++j) to[j * all.heads] += row[j];
    }
  }
}

// grad_q, grad_k and grad_v have rows like q, k and v. grad_bias: (parts of `size` sentences, distances, heads).
template <class T>
void attention_gradient(const T* grad, const T* q, const T* k, const T* v, const T* weights,
                        const int64_t* query_starts, const int64_t* key_starts, T* grad_q, T* grad_k, T* grad_v,
                        T* grad_bias, int64_t size, int64_t sentences, int64_t heads, int64_t head_dim,
                        int64_t query_row, int64_t key_row, int64_t width, int64_t causal, double scale,
                        int64_t threshold, int64_t threads) {
  const Layout<T> all{q,        k,         v,       query_starts, key_starts, heads,
                      head_dim, query_row, key_row, width,        causal != 0};
  const T factor = WeightDropout<T>{static_cast<uint32_t>(threshold), 0}.factor();
  for_parts(sentences, size, threads, [=](int64_t first, int64_t last) {
    int64_t most = 0;
    for (int64_t sentence = first; sentence < last; ++sentence) most = std::max(most, all.queries(sentence));
    const int64_t head_biases = grad_bias ? width * all.padded() : 0;
    const Scratch<T> values(head_dim * all.padded()), scores(most * all.padded()), kept(most * all.padded());
    const Scratch<T> biases(heads * head_biases);
    std::fill_n(biases.begin(), heads * head_biases, T(0));
    for (int64_t sentence = first; sentence < last; ++sentence) {
      for (int64_t number = 0; number < heads; ++number) {
        const Head<T> head = all.head(sentence, number);
        const Matrix<T> gradients{grad + all.result_of(sentence, number), heads * head_dim};
        const int64_t there = all.key_of(sentence, number);
        T* sums = grad_bias ? biases.begin() + number * head_biases : nullptr;
        query_gradient(all, head, gradients, weights + all.weights_of(sentence, head), T(scale), factor,
                       grad_q + all.query_of(sentence, number), scores.begin(), kept.begin(), sums, values.begin());
        key_gradient(all, head, gradients, scores.begin(), kept.begin(), grad_k + there, grad_v + there);
      }
    }
    if (grad_bias) by_distance(all, biases.begin(), grad_bias + first / size * (2 * width - 1) * heads);
  });
}

}  // namespace mnmt

#define PARAMETERS(T)                                                                                        \
  (const T* q, const T* k, const T* v, const T* bias, const int64_t* query_starts, const int64_t* key_starts, \
   T* y, T* weights, int64_t size, int64_t sentences, int64_t heads, int64_t head_dim, int64_t query_row,     \
   int64_t key_row, int64_t width, int64_t causal, double scale, int64_t threshold, int64_t seed,             \
   int64_t threads)
MNMT_EXPORT(attention, PARAMETERS,
            (q, k, v, bias, query_starts, key_starts, y, weights, size, sentences, heads, head_dim, query_row, key_row,
             width, causal, scale, threshold, seed, threads))
#undef PARAMETERS

#define PARAMETERS(T)                                                                                           \
  (const T* grad, const T* q, const T* k, const T* v, const T* weights, const int64_t* query_starts,            \
   const int64_t* key_starts, T* grad_q, T* grad_k, T* grad_v, T* grad_bias, int64_t size, int64_t sentences,   \
   int64_t heads, int64_t head_dim, int64_t query_row, int64_t key_row, int64_t width, int64_t causal,          \
   double scale, int64_t threshold, int64_t threads)
MNMT_EXPORT(attention_gradient, PARAMETERS,
            (grad, q, k, v, weights, query_starts, key_starts, grad_q, grad_k, grad_v, grad_bias, size, sentences,
             heads, head_dim, query_row, key_row, width, causal, scale, threshold, threads))
