// Checks of the tensors of `dispatch` and `combine`, on every device. The Python functions make them
// too, with better messages; here they keep a direct call through torch.ops from reading out of bounds.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <limits>
#include <optional>

#include "check.h"
#include "options.h"

namespace mnmt_moe {

// Rows are numbered in int32.
inline int64_t checked_num_rows(int64_t bins, int64_t bin_size) {
    MNMT_CHECK(bin_size >= 0, "`bin_size` must not be negative");
    MNMT_CHECK(bins == 0 || bin_size <= std::numeric_limits<int32_t>::max() / bins,
               "`bin_size` makes more rows than int32 can number");
    return bins * bin_size;
}

// Whether a token may have so many choices.
inline bool is_top_k(int64_t count) { return count >= 1 && count <= kMaxTopK; }

// Returns how many rows the buffers have.
inline int64_t check_layout(const Tensor& rows, const Tensor& filled, int64_t bin_size,
                            const Tensor& beside) {
    MNMT_CHECK(rows.dim() == 2 && is_top_k(rows.size(1)), "`rows` must be (n, k), with k in 1 to 8");
    MNMT_CHECK(filled.dim() == 1, "`filled` must be (bins)");
    check_tensor(rows, "rows", ScalarType::Int, {rows.size(0), rows.size(1)}, beside);
    check_tensor(filled, "filled", ScalarType::Int, {filled.size(0)}, beside);
    return checked_num_rows(filled.size(0), bin_size);
}

inline void check_elements(const Tensor& tensor, const char* name) {
    const ScalarType type = tensor.scalar_type();
    MNMT_CHECK(type == ScalarType::Float || type == ScalarType::BFloat16 || type == ScalarType::Double, "`",
               name, "` must be float32, bfloat16 or float64");
    MNMT_CHECK(tensor.dim() == 2, "`", name, "` must have two dimensions");
}

// Returns how many rows the buffers have.
inline int64_t check_dispatch(const Tensor& tokens, const Tensor& rows, const Tensor& filled,
                              int64_t bin_size) {
    check_elements(tokens, "tokens");
    const int64_t num_rows = check_layout(rows, filled, bin_size, tokens);
    MNMT_CHECK(rows.size(0) == tokens.size(0), "`rows` must be (n, k) for `tokens` of (n, d)");
    return num_rows;
}

inline void check_combine(const Tensor& buffers, const std::optional<Tensor>& weights, const Tensor& rows,
                          const Tensor& filled, int64_t bin_size) {
    check_elements(buffers, "buffers");
    const int64_t num_rows = check_layout(rows, filled, bin_size, buffers);
    MNMT_CHECK(buffers.size(0) == num_rows, "`buffers` must have bins * bin_size rows");
    const bool is_double = buffers.scalar_type() == ScalarType::Double;
    check_tensor(weights, "weights", is_double ? ScalarType::Double : ScalarType::Float,
                 {rows.size(0), rows.size(1)}, buffers);
}

inline void check_combine_backward(const Tensor& grad, const Tensor& buffers, const Tensor& weights,
                                   const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    check_combine(buffers, weights, rows, filled, bin_size);
    check_tensor(grad, "grad", buffers.scalar_type(), {rows.size(0), buffers.size(1)}, buffers);
}

}  // namespace mnmt_moe
