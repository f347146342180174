// The gradient of `route` on the CPU.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <vector>

#include "../route_arguments.h"
#include "blocks.h"
#include "experts_row.h"
#include "gates.h"
#include "weights.h"

namespace mnmt_moe {
namespace {

// Arguments and results of a call that concern single tokens. n = groups * tokens.
template <typename T>
struct Tokens {
    explicit Tokens(const RouteBackwardCall& call)
        : num_experts(call.shape.num_experts),
          top_k(call.shape.top_k),
          renormalise(call.renormalise),
          logits(read<T>(call.logits)),
          choices(read<int32_t>(call.choices)),
          slots(read<int32_t>(call.slots)),
          log_sums(read<T>(call.log_sums)),
          grad_weights(read<T>(call.grad_weights)),
          grad_log_sums(read<T>(call.grad_log_sums)),
          grad_logits(write<T>(call.grad_logits)) {}

    int64_t num_experts, top_k;
    Renormalise renormalise;
    const T* logits;         // (n, num_experts)
    const int32_t* choices;  // (n, k)
    const int32_t* slots;    // (n, k)
    const T* log_sums;       // (n)
    const T* grad_weights;   // (n, k), or null for 0
    const T* grad_log_sums;  // (n), or null for 0
    T* grad_logits;          // (n, num_experts)
};

// Replaces the logits by the gates g, and returns sum_j g_j G_j with the gradient G of the gates.
template <typename T>
MNMT_MOE_INLINE T gates_and_product(T* row, int32_t length, T log_sum, const T* grad_gates) {
    T product = 0;
#pragma omp simd reduction(+ : product)
    for (int32_t expert = 0; expert < length; ++expert) {
        row[expert] = exponential(row[expert] - log_sum);
        product += row[expert] * grad_gates[expert];
    }
    return product;
}

// Writes g_i dL/dg_i (k) of the token's choices, of what comes by the weights, and returns their sum.
template <typename T>
T choice_products(const Tokens<T>& tokens, int64_t token, const T* gates, T* products) {
    const int64_t top_k = tokens.top_k, first = token * top_k;
    T of_choices[kMaxTopK], sum = 0;
    for (int64_t rank = 0; rank < top_k; ++rank) {
        of_choices[rank] = gates[tokens.choices[first + rank]];
    }
    weigh_backward(of_choices, tokens.slots + first, top_k, tokens.renormalise,
                   tokens.grad_weights == nullptr ? nullptr : tokens.grad_weights + first, products);
    for (int64_t rank = 0; rank < top_k; ++rank) {
        products[rank] *= of_choices[rank];
        sum += products[rank];
    }
    return sum;
}

// With the gates g and their gradient G, dL/dlogit_i = g_i (G_i - sum_j g_j G_j + dL/dlog_sum). G is
// `grad_gates`, which any real token of the group gets by the mean gates, and for the choices what comes by
// their weights. `row` is scratch memory.
template <typename T>
MNMT_MOE_INLINE void backward_token(const Tokens<T>& tokens, int64_t token, const T* grad_gates, T* row) {
    const int64_t num_experts = tokens.num_experts;
    const int32_t length = padded(num_experts);
    load_row(tokens.logits + token * num_experts, num_experts, row);
    T products[kMaxTopK];
    T mean = gates_and_product(row, length, tokens.log_sums[token], grad_gates);
    mean -= tokens.grad_log_sums == nullptr ? 0 : tokens.grad_log_sums[token];
    mean += choice_products(tokens, token, row, products);
    for (int32_t expert = 0; expert < length; ++expert) {
        row[expert] *= grad_gates[expert] - mean;
    }
    for (int64_t rank = 0; rank < tokens.top_k; ++rank) {
        row[tokens.choices[token * tokens.top_k + rank]] += products[rank];
    }
    std::copy_n(row, num_experts, tokens.grad_logits + token * num_experts);
}

template <typename T>
MNMT_MOE_SHORT_CLONES void backward_block(const Tokens<T>& tokens, int64_t begin, int64_t end,
                                          const T* grad_gates, T* row) {
    for (int64_t token = begin; token < end; ++token) {
        if (tokens.choices[token * tokens.top_k] == kNone) {
            std::fill_n(tokens.grad_logits + token * tokens.num_experts, tokens.num_experts, T{});
        } else {
            backward_token(tokens, token, grad_gates, row);
        }
    }
}

// The gradients (groups, padded num_experts) of the gates of each group's real tokens by their mean.
template <typename T>
std::vector<T> gate_gradients(const RouteBackwardCall& call) {
    const int64_t num_experts = call.shape.num_experts;
    const int32_t length = padded(num_experts);
    std::vector<T> grads(call.shape.groups * length);
    const auto* grad_means = read<T>(call.grad_gate_means);
    const auto* real_tokens = read<int32_t>(call.real_tokens);
    for (int64_t bin = 0; grad_means != nullptr && bin < call.shape.bins(); ++bin) {
        const int64_t group = bin / num_experts;
        const T real = std::max(1, real_tokens[group]);
        grads[group * length + bin % num_experts] = grad_means[bin] / real;
    }
    return grads;
}

template <typename T>
void run_for(const RouteBackwardCall& call) {
    const Tokens<T> tokens(call);
    const Blocks blocks{call.shape.groups, call.shape.tokens, call.shape.num_experts};
    const int32_t length = padded(blocks.num_experts);
    const std::vector<T> grad_gates = gate_gradients<T>(call);
    blocks.in_parallel([&](int64_t block) {
        std::vector<T> row(length);
        backward_block(tokens, blocks.begin(block), blocks.end(block),
                       grad_gates.data() + blocks.group_of(block) * length, row.data());
    });
}

void run(const RouteBackwardCall& call) {
    check_choices(call.choices, nullptr, call.shape.num_experts);
    call.logits.scalar_type() == ScalarType::Float ? run_for<float>(call) : run_for<double>(call);
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("route_backward", TORCH_BOX(&mnmt_moe::route_backward<mnmt_moe::run>));
}
