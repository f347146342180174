// Copies and sums of rows, bound by the memory's bandwidth: on plain arrays, contiguous and row-major, a
// range of tokens at a time, so that the caller decides what runs in parallel.
//
// No header of torch or with inline functions is used here: what the linker shares between the instruction
// sets must not be compiled for the best of them.
#pragma once

#include <cstdint>

#include "bfloat16.h"

namespace mnmt_moe {

template <typename Element>
struct AccumulatedIn {
    using Type = float;
};

template <>
struct AccumulatedIn<double> {
    using Type = double;
};

template <typename Element>
using Weight = typename AccumulatedIn<Element>::Type;

inline constexpr int kMostRows = 8;  // of a token

// Buffers of `num_rows` rows, and where tokens are in them.
struct RowPlan {
    const int32_t* rows;  // (tokens, k), -1 for none
    int top_k;            // k, choices of a token
    int64_t num_rows;
    int64_t width;  // elements of a row
};

template <typename Element>
struct DispatchCall {
    const Element* tokens;  // (tokens, width)
    Element* buffers;       // (num_rows, width)
};

template <typename Element>
struct CombineCall {
    const Element* buffers;          // (num_rows, width)
    const Weight<Element>* weights;  // (tokens, k); null for 1
    Element* out;                    // (tokens, width)
};

template <typename Element>
struct CombineBackwardCall {
    const Element* grad;             // (tokens, width)
    const Element* buffers;          // (num_rows, width)
    const Weight<Element>* weights;  // (tokens, k)
    Element* grad_buffers;           // (num_rows, width)
    Weight<Element>* grad_weights;   // (tokens, k)
};

// The functions of a plan return false, having skipped it, where a row is not one of the buffers.
template <typename Element>
struct RowKernels {
    // Copies the tokens [begin, end) to their rows.
    bool (*dispatch)(const RowPlan&, const DispatchCall<Element>&, int64_t begin, int64_t end);
    // Sums the weighted rows of the tokens [begin, end).
    bool (*combine)(const RowPlan&, const CombineCall<Element>&, int64_t begin, int64_t end);
    // For the tokens [begin, end): rows of grad_buffers = weight * grad, grad_weights = <grad, row>.
    bool (*combine_backward)(const RowPlan&, const CombineBackwardCall<Element>&, int64_t begin, int64_t end);
    void (*zero)(Element* elements, int64_t size);
};

// For float, Bfloat16 and double. Those for `streamed` output write it past the caches; it must begin on a
// cache line and have rows of whole ones.
namespace baseline {
template <typename Element>
RowKernels<Element> row_kernels(bool streamed);
}
namespace avx2 {
template <typename Element>
RowKernels<Element> row_kernels(bool streamed);
}
namespace avx512 {
template <typename Element>
RowKernels<Element> row_kernels(bool streamed);
}

}  // namespace mnmt_moe
