#include "gate_kernels.h"

#include "rows_of_logits.h"

namespace mnmt_moe::MNMT_MOE_ISA {
namespace {

// How many choices tokens have: kTopK, which spares loops over them, or options.top_k if it is kAnyTopK.
constexpr int kAnyTopK = 0;

template <int kTopK>
MNMT_MOE_INLINE int top_k_of(const GateOptions& options) {
    return kTopK == kAnyTopK ? options.top_k : kTopK;
}

float logarithm(float x) { return __builtin_logf(x); }
double logarithm(double x) { return __builtin_log(x); }

template <typename T>
MNMT_MOE_INLINE void load_token(const T* logits, const GateOptions& options, int64_t at, T* row) {
    const int64_t num_experts = options.num_experts;
    load_row(logits + at * num_experts, num_experts, (options.num_tokens - at) * num_experts, row);
}

// Writes the choices and returns the largest logit.
template <int kTopK, typename T>
MNMT_MOE_INLINE T choose_experts(const GateArrays<T>& arrays, const GateOptions& options, int64_t at,
                                 ChoiceScratch<T> scratch, int32_t* choices) {
    const int64_t padded = padded_row<T>(options.num_experts);
    const int top_k = top_k_of<kTopK>(options);
    if (arrays.forced != nullptr) {
        std::memcpy(choices, arrays.forced + top_k * at, top_k * sizeof(int32_t));
        return largest_of_row(scratch.row, padded);
    }
    if (arrays.bias == nullptr) {
        return choose_largest(scratch.row, padded, top_k, choices);
    }
    add_rows(scratch.row, arrays.bias, padded, scratch.scores);
    choose_largest(scratch.scores, padded, top_k, choices);
    return largest_of_row(scratch.row, padded);
}

// Whether the second choice is kept, which is random with token ids.
template <typename T>
MNMT_MOE_INLINE bool keep_second(const GateArrays<T>& arrays, const GateOptions& options, int64_t at,
                                 const T* row, T largest, const int32_t* choices) {
    if (arrays.token_ids == nullptr) {
        return true;
    }
    const auto [seed, step, layer] = options.key;
    const double draw = uniform_draw(seed, step, layer, arrays.token_ids[at]);
    return weighs_enough(row, options, row[choices[0]], row[choices[1]], largest, draw);
}

template <typename T>
MNMT_MOE_INLINE void skip_padding(const GateArrays<T>& arrays, int top_k, int64_t at) {
    for (int64_t choice = top_k * at; choice < top_k * (at + 1); ++choice) {
        arrays.choices[choice] = arrays.experts[choice] = kNone;
        arrays.weights[choice] = 0;
    }
    arrays.log_sums[at] = 0;
}

template <int kTopK, typename T>
MNMT_MOE_INLINE void choose_token(const GateArrays<T>& arrays, const GateOptions& options, int64_t at,
                                  BlockSums<T> sums, ChoiceScratch<T> scratch) {
    const int64_t padded = padded_row<T>(options.num_experts);
    const int top_k = top_k_of<kTopK>(options);
    T* row = scratch.row;
    load_token(arrays.logits, options, at, row);
    int32_t choices[kMaxTopK];
    const T largest = choose_experts<kTopK>(arrays, options, at, scratch, choices);
    const bool second_kept = keep_second(arrays, options, at, row, largest, choices);
    // Logits that are all -infinity sum up to 0, whose logarithm is -infinity; shifted they would be NaN.
    const T shift = largest == -std::numeric_limits<T>::infinity() ? 0 : largest;
    const T sum = exponentiate(row, padded, shift);
    arrays.log_sums[at] = shift + logarithm(sum);
    for (int rank = 0; rank < top_k; ++rank) {
        const int32_t expert = choices[rank];
        const bool kept = rank != 1 || second_kept;
        arrays.choices[top_k * at + rank] = expert;
        arrays.experts[top_k * at + rank] = kept ? expert : kNone;
        arrays.weights[top_k * at + rank] = row[expert] / sum;
        sums.claims[rank * options.num_experts + expert] += kept;
    }
    const T scale = 1 / sum;
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        store<T>(sums.gates + expert, load(sums.gates + expert) + load(row + expert) * scale);
    }
}

template <int kTopK, typename T>
void choose(const GateArrays<T>& arrays, const GateOptions& options, TokenRange range, BlockSums<T> sums,
            ChoiceScratch<T> scratch) {
    for (int64_t at = range.begin; at < range.end; ++at) {
        if (arrays.padding[at]) {
            skip_padding(arrays, top_k_of<kTopK>(options), at);
        } else {
            choose_token<kTopK>(arrays, options, at, sums, scratch);
        }
    }
}

MNMT_MOE_INLINE int32_t take_slot(int32_t expert, int64_t capacity, int32_t* used) {
    if (expert == kNone) {
        return kNone;
    }
    const int32_t position = used[expert]++;
    return position < capacity ? position : kNone;
}

template <int kTopK, typename T>
void assign(const GateArrays<T>& arrays, const GateOptions& options, TokenRange range, int32_t* used,
            const int32_t* first_rows) {
    const int top_k = top_k_of<kTopK>(options);
    for (int64_t at = range.begin; at < range.end; ++at) {
        const int32_t* experts = arrays.experts + top_k * at;
        int32_t* slots = arrays.slots + top_k * at;
        int32_t* rows = arrays.rows + top_k * at;
        T* weights = arrays.weights + top_k * at;
        T all = 0, slotted = 0;
        for (int rank = 0; rank < top_k; ++rank) {
            slots[rank] = take_slot(experts[rank], options.capacity, used + rank * options.num_experts);
            rows[rank] = slots[rank] == kNone ? kNone : first_rows[experts[rank]] + slots[rank];
            all += weights[rank];
            weights[rank] = slots[rank] == kNone ? 0 : weights[rank];
            slotted += weights[rank];
        }
        const T sum =
            (options.renormalise == Renormalise::after ? slotted : all) + static_cast<T>(kRenormaliseEpsilon);
        for (int rank = 0; rank < top_k && options.renormalise != Renormalise::never; ++rank) {
            weights[rank] /= sum;
        }
    }
}

// The gradient with respect to the gates g of the choices. With w_i = s_i g_i / D, s_i = 1 for a choice with
// a slot and D = sum_j d_j g_j + epsilon: dL/dg_i = (s_i u_i - d_i sum_j (s_j u_j g_j) / D) / D. Without
// `grad_weights` it is 0.
template <int kTopK, typename T>
MNMT_MOE_INLINE void weight_gradient(const T* gates, const int32_t* slots, const T* grad_weights,
                                     const GateOptions& options, T* grad) {
    const int top_k = top_k_of<kTopK>(options);
    bool in_sum[kMaxTopK];
    T sum = static_cast<T>(kRenormaliseEpsilon), products = 0;
    for (int rank = 0; rank < top_k; ++rank) {
        const bool has_slot = slots[rank] != kNone;
        in_sum[rank] = has_slot || options.renormalise == Renormalise::before;
        grad[rank] = has_slot && grad_weights != nullptr ? grad_weights[rank] : 0;
        sum += in_sum[rank] ? gates[rank] : 0;
        products += grad[rank] * gates[rank];
    }
    for (int rank = 0; rank < top_k && options.renormalise != Renormalise::never; ++rank) {
        grad[rank] = (grad[rank] - (in_sum[rank] ? products / sum : 0)) / sum;
    }
}

// With the gates g and their gradient G, dL/dlogits_i = g_i (G_i - sum_j g_j G_j + dL/dlog_sum). G is
// `grad_gates`, to which the weights' gradient is added for the choices.
template <int kTopK, typename T>
MNMT_MOE_INLINE void backward_token(const GradientArrays<T>& arrays, const GateOptions& options, int64_t at,
                                    const T* grad_gates, T* row) {
    const int64_t padded = padded_row<T>(options.num_experts);
    const int top_k = top_k_of<kTopK>(options);
    const int32_t* choices = arrays.choices + top_k * at;
    const T log_sum = arrays.log_sums[at];
    load_token(arrays.logits, options, at, row);
    Values<T> products{};
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        const Values<T> gates = exponential<T>(load(row + expert) - log_sum);
        store<T>(row + expert, gates);
        products += gates * load(grad_gates + expert);
    }
    T gates[kMaxTopK], grad[kMaxTopK];
    for (int rank = 0; rank < top_k; ++rank) {
        gates[rank] = row[choices[rank]];
    }
    const T* grad_weights = arrays.grad_weights == nullptr ? nullptr : arrays.grad_weights + top_k * at;
    weight_gradient<kTopK>(gates, arrays.slots + top_k * at, grad_weights, options, grad);
    T mean = sum_of_lanes<T>(products) - (arrays.grad_log_sums == nullptr ? 0 : arrays.grad_log_sums[at]);
    for (int rank = 0; rank < top_k; ++rank) {
        mean += gates[rank] * grad[rank];
    }
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        store<T>(row + expert, load(row + expert) * (load(grad_gates + expert) - mean));
    }
    for (int rank = 0; rank < top_k; ++rank) {
        row[choices[rank]] += gates[rank] * grad[rank];
    }
    std::memcpy(arrays.grad_logits + at * options.num_experts, row, options.num_experts * sizeof(T));
}

template <int kTopK, typename T>
void backward(const GradientArrays<T>& arrays, const GateOptions& options, TokenRange range,
              const T* grad_gates, T* row) {
    for (int64_t at = range.begin; at < range.end; ++at) {
        if (arrays.choices[top_k_of<kTopK>(options) * at] == kNone) {
            std::memset(arrays.grad_logits + at * options.num_experts, 0, options.num_experts * sizeof(T));
        } else {
            backward_token<kTopK>(arrays, options, at, grad_gates, row);
        }
    }
}

template <int kTopK, typename T>
constexpr GateKernels<T> kernels() {
    return {choose<kTopK, T>, assign<kTopK, T>, backward<kTopK, T>};
}

}  // namespace

template <typename T>
GateKernels<T> gate_kernels(int top_k) {
    return top_k == 2 ? kernels<2, T>() : kernels<kAnyTopK, T>();
}

template GateKernels<float> gate_kernels(int top_k);
template GateKernels<double> gate_kernels(int top_k);

}  // namespace mnmt_moe::MNMT_MOE_ISA
