#include "gate_kernels.h"

#include "rows_of_logits.h"

namespace mnmt_moe::MNMT_MOE_ISA {
namespace {

float logarithm(float x) { return __builtin_logf(x); }
double logarithm(double x) { return __builtin_log(x); }

template <typename Logit, typename T>
MNMT_MOE_INLINE void load_token(const Logit* logits, const GateOptions& options, int64_t at, T* row) {
    const int64_t num_experts = options.num_experts;
    load_row(logits + at * num_experts, num_experts, (options.num_tokens - at) * num_experts, row);
}

// The second choice after the policy, kNone if it is not kept. May change choices[1].
template <typename Logit, typename T>
MNMT_MOE_INLINE int32_t apply_policy(const GateArrays<Logit>& arrays, const GateOptions& options, int64_t at,
                                     const T* row, const TopTwo<T>& top, double* chances) {
    int32_t* choices = arrays.choices + 2 * at;
    if (options.policy == Policy::always) {
        return choices[1];
    }
    const auto [seed, step, layer] = options.key;
    const double draw = uniform_draw(seed, step, layer, arrays.token_ids[at]);
    if (options.policy == Policy::sampled) {
        return choices[1] = sample_second(row, options.num_experts, top, draw, chances);
    }
    const bool keep = keeps_second(row, options, row[choices[0]], row[choices[1]], top.largest, draw);
    return keep ? choices[1] : kNone;
}

template <typename Logit>
MNMT_MOE_INLINE void skip_padding(const GateArrays<Logit>& arrays, int64_t at) {
    for (int64_t pair = 2 * at; pair < 2 * at + 2; ++pair) {
        arrays.choices[pair] = arrays.experts[pair] = kNone;
        arrays.weights[pair] = 0;
    }
    arrays.log_sums[at] = 0;
}

template <typename Logit, typename T>
MNMT_MOE_INLINE void choose_token(const GateArrays<Logit>& arrays, const GateOptions& options, int64_t at,
                                  BlockSums<T> sums, T* row, double* chances) {
    const int64_t padded = padded_row<T>(options.num_experts);
    load_token(arrays.logits, options, at, row);
    const TopTwo<T> top = top_two(row, padded);
    int32_t* choices = arrays.choices + 2 * at;
    choices[0] = arrays.forced == nullptr ? top.first : arrays.forced[2 * at];
    choices[1] = arrays.forced == nullptr ? top.second : arrays.forced[2 * at + 1];
    const int32_t second = apply_policy(arrays, options, at, row, top, chances);
    arrays.experts[2 * at] = choices[0];
    arrays.experts[2 * at + 1] = second;
    ++sums.first[choices[0]];
    if (second != kNone) {
        ++sums.second[second];
    }
    const T sum = exponentiate(row, padded, top.largest);
    arrays.log_sums[at] = top.largest + logarithm(sum);
    arrays.weights[2 * at] = row[choices[0]] / sum;
    arrays.weights[2 * at + 1] = row[choices[1]] / sum;
    const T scale = 1 / sum;
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        store<T>(sums.gates + expert, load(sums.gates + expert) + load(row + expert) * scale);
    }
}

template <typename Logit>
void choose(const GateArrays<Logit>& arrays, const GateOptions& options, TokenRange range,
            BlockSums<GateOf<Logit>> sums, GateOf<Logit>* row, double* chances) {
    for (int64_t at = range.begin; at < range.end; ++at) {
        if (arrays.padding[at]) {
            skip_padding(arrays, at);
        } else {
            choose_token(arrays, options, at, sums, row, chances);
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

template <typename Logit>
void assign(const GateArrays<Logit>& arrays, const GateOptions& options, TokenRange range,
            int32_t* used_first, int32_t* used_second) {
    using Gate = GateOf<Logit>;
    for (int64_t pair = 2 * range.begin; pair < 2 * range.end; pair += 2) {
        const int32_t first = take_slot(arrays.experts[pair], options.capacity, used_first);
        const int32_t second = take_slot(arrays.experts[pair + 1], options.capacity, used_second);
        arrays.slots[pair] = first;
        arrays.slots[pair + 1] = second;
        Gate* weights = arrays.weights + pair;
        const Gate slotted[2] = {first == kNone ? 0 : weights[0], second == kNone ? 0 : weights[1]};
        const Gate sum = options.renormalise_after ? slotted[0] + slotted[1] : weights[0] + weights[1];
        weights[0] = slotted[0] / (sum + static_cast<Gate>(kRenormaliseEpsilon));
        weights[1] = slotted[1] / (sum + static_cast<Gate>(kRenormaliseEpsilon));
    }
}

template <typename T>
struct Pair {
    T first;
    T second;
};

// The gradient with respect to the gates g of the choices. With w_i = k_i g_i / D, k_i = 1 for a kept choice
// and D = d_1 g_1 + d_2 g_2 + epsilon: dL/dg_i = (k_i u_i - d_i (k_1 u_1 g_1 + k_2 u_2 g_2) / D) / D.
template <typename T>
MNMT_MOE_INLINE Pair<T> weight_gradient(Pair<T> gates, const int32_t* slots, const T* grad_weights,
                                        bool after) {
    const bool has_slot[2] = {slots[0] != kNone, slots[1] != kNone};
    const bool in_sum[2] = {has_slot[0] || !after, has_slot[1] || !after};
    const Pair<T> grad{has_slot[0] ? grad_weights[0] : 0, has_slot[1] ? grad_weights[1] : 0};
    const T sum =
        (in_sum[0] ? gates.first : 0) + (in_sum[1] ? gates.second : 0) + static_cast<T>(kRenormaliseEpsilon);
    const T shared = (grad.first * gates.first + grad.second * gates.second) / sum;
    return {(grad.first - (in_sum[0] ? shared : 0)) / sum, (grad.second - (in_sum[1] ? shared : 0)) / sum};
}

// With the gates g and their gradient G, dL/dlogits_i = g_i (G_i - sum_j g_j G_j). G is `grad_gates` but for
// the two choices, which have the weights' gradient in addition.
template <typename Logit, typename T>
MNMT_MOE_INLINE void backward_token(const GradientArrays<Logit>& arrays, const GateOptions& options,
                                    int64_t at, const T* grad_gates, T* row) {
    const int64_t padded = padded_row<T>(options.num_experts);
    const int32_t first = arrays.choices[2 * at], second = arrays.choices[2 * at + 1];
    const T log_sum = arrays.log_sums[at];
    load_token(arrays.logits, options, at, row);
    Values<T> products{};
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        const Values<T> gates = exponential<T>(load(row + expert) - log_sum);
        store<T>(row + expert, gates);
        products += gates * load(grad_gates + expert);
    }
    const Pair<T> gates{row[first], row[second]};
    const Pair<T> grad = weight_gradient(gates, arrays.slots + 2 * at, arrays.grad_weights + 2 * at,
                                         options.renormalise_after);
    const T mean = sum_of_lanes<T>(products) + gates.first * grad.first + gates.second * grad.second;
    for (int64_t expert = 0; expert < padded; expert += Lanes<T>::count) {
        store<T>(row + expert, load(row + expert) * (load(grad_gates + expert) - mean));
    }
    row[first] += gates.first * grad.first;
    row[second] += gates.second * grad.second;
    store_row(row, options.num_experts, arrays.grad_logits + at * options.num_experts);
}

template <typename Logit>
void backward(const GradientArrays<Logit>& arrays, const GateOptions& options, TokenRange range,
              const GateOf<Logit>* grad_gates, GateOf<Logit>* row) {
    for (int64_t at = range.begin; at < range.end; ++at) {
        if (arrays.choices[2 * at] == kNone) {
            std::memset(arrays.grad_logits + at * options.num_experts, 0,
                        options.num_experts * sizeof(Logit));
        } else {
            backward_token(arrays, options, at, grad_gates, row);
        }
    }
}

}  // namespace

template <typename Logit>
GateKernels<Logit> gate_kernels() {
    return {choose<Logit>, assign<Logit>, backward<Logit>};
}

template GateKernels<float> gate_kernels();
template GateKernels<Bfloat16> gate_kernels();
template GateKernels<double> gate_kernels();

}  // namespace mnmt_moe::MNMT_MOE_ISA
