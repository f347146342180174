// The top-2 gate on plain arrays, a block of tokens at a time: what each token chooses, which slots it gets,
// and the gradient. Arrays are contiguous and row-major; n = groups * tokens.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../philox.h"
#include "bfloat16.h"
#include "isa.h"

namespace mnmt_moe {

inline constexpr int32_t kNone = -1;
// Added to the sum of the two gates before dividing by it.
inline constexpr double kRenormaliseEpsilon = 1e-9;

// Scratch rows are padded to a multiple of 64 bytes.
template <typename Gate>
constexpr int64_t padded_row(int64_t num_experts) {
    constexpr int64_t multiple = 64 / sizeof(Gate);
    return (num_experts + multiple - 1) / multiple * multiple;
}

// What everything is computed in.
template <typename Logit>
using GateOf = std::conditional_t<std::is_same_v<Logit, double>, double, float>;

// A token's draw depends on these and its id alone.
struct DrawKey {
    int64_t seed;
    int64_t step;
    int64_t layer;
};

enum class Policy : int64_t { always, random, sampled };

struct GateOptions {
    int64_t num_tokens;  // n
    int64_t num_experts;
    int64_t capacity;  // slots of each expert in each group
    Policy policy;
    double threshold;        // "random": a second choice of this weight or more is always kept
    bool renormalise_after;  // divide by the sum over the kept choices, not over both
    DrawKey key;
};

struct TokenRange {
    int64_t begin;
    int64_t end;
};

template <typename Logit>
struct GateArrays {
    const Logit* logits;       // (n, num_experts)
    const bool* padding;       // (n)
    const int32_t* forced;     // (n, 2): choices made elsewhere; null to choose the two largest logits
    const int64_t* token_ids;  // (n); null for Policy::always
    int32_t* choices;          // (n, 2), -1 for padding
    int32_t* experts;          // (n, 2): the choices that the policy kept; -1 for none
    int32_t* slots;            // (n, 2), -1 for none and for dropped
    GateOf<Logit>* weights;    // (n, 2): first the gates of the choices, then their weights
    GateOf<Logit>* log_sums;   // (n): log of the sum of exp(logits); 0 for padding
};

// Sums over the tokens of a block.
template <typename Gate>
struct BlockSums {
    Gate* gates;      // (padded_row(num_experts))
    int32_t* first;   // (num_experts): tokens whose first choice this expert is
    int32_t* second;  // (num_experts): the same for second choices that the policy kept
};

template <typename Logit>
struct GradientArrays {
    const Logit* logits;                // (n, num_experts)
    const int32_t* choices;             // (n, 2)
    const int32_t* slots;               // (n, 2)
    const GateOf<Logit>* log_sums;      // (n)
    const GateOf<Logit>* grad_weights;  // (n, 2)
    Logit* grad_logits;                 // (n, num_experts)
};

template <typename Logit>
struct GateKernels {
    using Gate = GateOf<Logit>;

    // Writes choices, experts, gates of the choices (to weights) and log_sums, and adds to the sums. `row`
    // holds padded_row(num_experts) numbers, `chances` as many, for Policy::sampled.
    void (*choose)(const GateArrays<Logit>&, const GateOptions&, TokenRange, BlockSums<Gate>, Gate* row,
                   double* chances);

    // Writes slots and weights. `used_first` and `used_second` (num_experts) say how many claims of each rank
    // came before the block, those that were too late included.
    void (*assign)(const GateArrays<Logit>&, const GateOptions&, TokenRange, int32_t* used_first,
                   int32_t* used_second);

    // Writes grad_logits. `grad_gates` (padded_row(num_experts)) is the auxiliary loss' gradient with respect
    // to the gates of any real token; `row` is as long.
    void (*backward)(const GradientArrays<Logit>&, const GateOptions&, TokenRange, const Gate* grad_gates,
                     Gate* row);
};

namespace baseline {
template <typename Logit>
GateKernels<Logit> gate_kernels();
}
namespace avx2 {
template <typename Logit>
GateKernels<Logit> gate_kernels();
}
namespace avx512 {
template <typename Logit>
GateKernels<Logit> gate_kernels();
}

}  // namespace mnmt_moe
