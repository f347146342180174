// The top-k gate on plain arrays, a block of tokens at a time: what each token chooses, which slots it gets,
// and the gradient. Arrays are contiguous and row-major; n = groups * tokens.
#pragma once

#include <cstdint>

#include "../options.h"
#include "../philox.h"
#include "isa.h"

namespace mnmt_moe {

// Scratch rows are padded to a multiple of 64 bytes.
template <typename T>
constexpr int64_t padded_row(int64_t num_experts) {
    constexpr int64_t multiple = 64 / sizeof(T);
    return (num_experts + multiple - 1) / multiple * multiple;
}

// A token's draw depends on these and its id alone.
struct DrawKey {
    int64_t seed;
    int64_t step;
    int64_t layer;
};

struct GateOptions {
    int64_t num_tokens;  // n
    int64_t num_experts;
    int top_k;         // k, choices of a token
    int64_t capacity;  // slots of each expert in each group
    double threshold;  // a second choice of this weight or more is always kept
    Renormalise renormalise;
    DrawKey key;
};

struct TokenRange {
    int64_t begin;
    int64_t end;
};

template <typename T>
struct GateArrays {
    const T* logits;           // (n, num_experts)
    const bool* padding;       // (n)
    const T* bias;             // (padded_row(num_experts)), added to the logits for the choice; or null
    const int32_t* forced;     // (n, k): choices made elsewhere; null to choose the largest logits
    const int64_t* token_ids;  // (n); null to keep every second choice
    int32_t* choices;          // (n, k), -1 for padding
    int32_t* experts;          // (n, k): the choices that are kept; -1 for none
    int32_t* slots;            // (n, k), -1 for none and for dropped
    int32_t* rows;             // (n, k), -1 without a slot
    T* weights;                // (n, k): first the gates of the choices, then their weights
    T* log_sums;               // (n): log of the sum of exp(logits); 0 for padding
};

// Sums over the tokens of a block.
template <typename T>
struct BlockSums {
    T* gates;         // (padded_row(num_experts))
    int32_t* claims;  // (k, num_experts): tokens whose choice of this rank the expert is, if it is kept
};

// Memory of padded_row(num_experts) numbers each.
template <typename T>
struct ChoiceScratch {
    T* row;
    T* scores;  // for a bias
};

template <typename T>
struct GradientArrays {
    const T* logits;         // (n, num_experts)
    const int32_t* choices;  // (n, k)
    const int32_t* slots;    // (n, k)
    const T* log_sums;       // (n)
    const T* grad_weights;   // (n, k), or null for 0
    const T* grad_log_sums;  // (n), or null for 0
    T* grad_logits;          // (n, num_experts)
};

template <typename T>
struct GateKernels {
    // Writes choices, experts, gates of the choices (to weights) and log_sums, and adds to the sums.
    void (*choose)(const GateArrays<T>&, const GateOptions&, TokenRange, BlockSums<T>, ChoiceScratch<T>);

    // Writes slots, rows and weights. `used` (k, num_experts) says how many claims came before the block's of
    // each rank, those that were too late included; `first_rows` (num_experts) the row of the group's slot 0.
    void (*assign)(const GateArrays<T>&, const GateOptions&, TokenRange, int32_t* used,
                   const int32_t* first_rows);

    // Writes grad_logits. `grad_gates` (padded_row(num_experts)) is the gradient with respect to the gates of
    // any real token that its group's mean brings; `row` is as long.
    void (*backward)(const GradientArrays<T>&, const GateOptions&, TokenRange, const T* grad_gates, T* row);
};

namespace baseline {
template <typename T>
GateKernels<T> gate_kernels(int top_k);
}
namespace avx2 {
template <typename T>
GateKernels<T> gate_kernels(int top_k);
}
namespace avx512 {
template <typename T>
GateKernels<T> gate_kernels(int top_k);
}

}  // namespace mnmt_moe
