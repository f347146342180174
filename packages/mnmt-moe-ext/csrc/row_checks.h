// Checks of the tensors of layouts, `dispatch` and `combine`, on every device. The Python functions make them
// too, with better messages; here they keep a direct call through torch.ops from reading out of bounds.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <limits>
#include <optional>

#include "check.h"

namespace mnmt_moe {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Rows are numbered in int32.
inline int64_t checked_num_rows(int64_t bins, int64_t bin_size) {
    MNMT_CHECK(bin_size >= 0, "`bin_size` must not be negative");
    MNMT_CHECK(bins == 0 || bin_size <= std::numeric_limits<int32_t>::max() / bins,
               "the buffers have more rows than int32 can number");
    return bins * bin_size;
}

inline void check_int32(const Tensor& tensor, const char* name, const Tensor& beside) {
    MNMT_CHECK(tensor.scalar_type() == ScalarType::Int, "`", name, "` must be int32");
    MNMT_CHECK(tensor.device() == beside.device(), "`", name, "` is on another device");
}

// Whether a token may have so many choices.
inline bool is_top_k(int64_t count) { return count >= 1 && count <= 8; }

// Checks the tensors of a routing.
inline void check_routing(const Tensor& experts, const Tensor& slots, const Tensor& load, int64_t capacity) {
    check_int32(experts, "experts", experts);
    check_int32(slots, "slots", experts);
    check_int32(load, "load", experts);
    MNMT_CHECK(experts.dim() == 3 && is_top_k(experts.size(2)),
               "`experts` must be (groups, tokens, k), with k in 1 to 8");
    MNMT_CHECK(slots.dim() == 3 && slots.size(0) == experts.size(0) && slots.size(1) == experts.size(1) &&
                   slots.size(2) == experts.size(2),
               "`slots` must be (groups, tokens, k)");
    MNMT_CHECK(load.dim() == 3 && load.size(0) == experts.size(0) && load.size(2) == experts.size(2),
               "`load` must be (groups, experts, k)");
    MNMT_CHECK(capacity >= 1 && capacity <= std::numeric_limits<int32_t>::max(),
               "`capacity` must be positive and an int32");
}

// Returns how many rows the buffers have.
inline int64_t check_layout(const Tensor& rows, const Tensor& filled, int64_t bin_size,
                            const Tensor& beside) {
    check_int32(rows, "rows", beside);
    check_int32(filled, "filled", beside);
    MNMT_CHECK(rows.dim() == 2 && is_top_k(rows.size(1)), "`rows` must be (n, k), with k in 1 to 8");
    MNMT_CHECK(filled.dim() == 1, "`filled` must be (bins)");
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

inline void check_weights(const Tensor& weights, const Tensor& buffers, const Tensor& rows) {
    const bool is_double = buffers.scalar_type() == ScalarType::Double;
    MNMT_CHECK(weights.scalar_type() == (is_double ? ScalarType::Double : ScalarType::Float),
               "`weights` must be float32, or float64 beside float64 buffers");
    MNMT_CHECK(weights.dim() == 2 && weights.size(0) == rows.size(0) && weights.size(1) == rows.size(1),
               "`weights` must be (n, k) like `rows`");
    MNMT_CHECK(weights.device() == buffers.device(), "`weights` is on another device");
}

inline void check_combine(const Tensor& buffers, const std::optional<Tensor>& weights, const Tensor& rows,
                          const Tensor& filled, int64_t bin_size) {
    check_elements(buffers, "buffers");
    const int64_t num_rows = check_layout(rows, filled, bin_size, buffers);
    MNMT_CHECK(buffers.size(0) == num_rows, "`buffers` must have bins * bin_size rows");
    if (weights.has_value()) {
        check_weights(*weights, buffers, rows);
    }
}

inline void check_combine_backward(const Tensor& grad, const Tensor& buffers, const Tensor& weights,
                                   const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    check_combine(buffers, weights, rows, filled, bin_size);
    MNMT_CHECK(grad.scalar_type() == buffers.scalar_type() && grad.device() == buffers.device(),
               "`grad` must have the type and the device of `buffers`");
    MNMT_CHECK(grad.dim() == 2 && grad.size(0) == rows.size(0) && grad.size(1) == buffers.size(1),
               "`grad` must be (n, d)");
}

}  // namespace mnmt_moe
