// `dispatch` and `combine` on the CPU: copies and sums of rows. The arguments of operators are described in
// schemas.cpp; here `rows` and `weights` are those of one token, k of each.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "../row_checks.h"
#include "../tensors.h"
#include "clones.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::parallel_for;

// Below this many bytes a thread costs more to wake than it saves.
constexpr int64_t kBytesPerThread = 1 << 16;
// Columns that are summed at a time, in registers.
constexpr int64_t kStrip = 64;

// The upper half of a float32.
struct Bfloat16 {
    uint16_t bits;
};

MNMT_MOE_INLINE float widen(float number) { return number; }
MNMT_MOE_INLINE double widen(double number) { return number; }
MNMT_MOE_INLINE float widen(Bfloat16 number) {
    const uint32_t bits = uint32_t{number.bits} << 16;
    float wide;
    std::memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

// What is computed in, and the type of weights: float32 for bfloat16.
template <typename Element>
using Wide = decltype(widen(Element{}));

MNMT_MOE_INLINE void store(float number, float& to) { to = number; }
MNMT_MOE_INLINE void store(double number, double& to) { to = number; }
// Rounds to the nearest bfloat16, ties to even; NaN stays NaN.
MNMT_MOE_INLINE void store(float number, Bfloat16& to) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    to.bits = static_cast<uint16_t>((number == number ? rounded : bits | 0x400000) >> 16);
}

// Sums `size` columns of the token's rows, at most kStrip.
template <typename Element>
MNMT_MOE_INLINE void sum_strip(const Element* buffers, const Wide<Element>* weights, const int32_t* rows,
                               int64_t top_k, int64_t width, int64_t size, Element* sum) {
    Wide<Element> sums[kStrip] = {};
    for (int64_t rank = 0; rank < top_k; ++rank) {
        if (rows[rank] == kNone) {
            continue;
        }
        const Element* row = buffers + rows[rank] * width;
        const Wide<Element> weight = weights == nullptr ? 1 : weights[rank];
        for (int64_t column = 0; column < size; ++column) {
            sums[column] += weight * widen(row[column]);
        }
    }
    for (int64_t column = 0; column < size; ++column) {
        store(sums[column], sum[column]);
    }
}

// Writes the sum of the token's rows, each times its weight, or times 1 without weights.
template <typename Element>
MNMT_MOE_CLONES void sum_rows(const Element* buffers, const Wide<Element>* weights, const int32_t* rows,
                              int64_t top_k, int64_t width, Element* sum) {
    const int64_t whole = width / kStrip * kStrip;
    for (int64_t first = 0; first < whole; first += kStrip) {
        sum_strip(buffers + first, weights, rows, top_k, width, kStrip, sum + first);
    }
    if (whole < width) {
        sum_strip(buffers + whole, weights, rows, top_k, width, width - whole, sum + whole);
    }
}

template <typename Element>
MNMT_MOE_INLINE Wide<Element> dot(const Element* a, const Element* b, int64_t width) {
    Wide<Element> sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t column = 0; column < width; ++column) {
        sum += widen(a[column]) * widen(b[column]);
    }
    return sum;
}

// The gradient of `sum_rows` from that of the sum, `grad`. Writes the gradients of the token's rows, weight *
// grad, and those of its weights, <grad, row>.
template <typename Element>
MNMT_MOE_CLONES void sum_rows_backward(const Element* grad, const Element* buffers,
                                       const Wide<Element>* weights, const int32_t* rows, int64_t top_k,
                                       int64_t width, Element* grad_buffers, Wide<Element>* grad_weights) {
    for (int64_t rank = 0; rank < top_k; ++rank) {
        grad_weights[rank] = 0;
        if (rows[rank] == kNone) {
            continue;
        }
        const int64_t first = rows[rank] * width;
        grad_weights[rank] = dot(grad, buffers + first, width);
        for (int64_t column = 0; column < width; ++column) {
            store(weights[rank] * widen(grad[column]), grad_buffers[first + column]);
        }
    }
}

// Calls function(Element{}).
template <typename Function>
void with_element_type(const Tensor& tensor, Function function) {
    switch (tensor.scalar_type()) {
        case ScalarType::Float:
            return function(float{});
        case ScalarType::BFloat16:
            return function(Bfloat16{});
        default:
            return function(double{});
    }
}

// Calls function(index) for 0 to count - 1, each of which moves so many bytes.
template <typename Function>
void in_parallel(int64_t count, int64_t bytes, Function function) {
    const int64_t per_thread = std::max<int64_t>(1, kBytesPerThread / std::max<int64_t>(1, bytes));
    parallel_for(0, count, per_thread, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
            function(index);
        }
    });
}

void check_rows(const Tensor& rows, int64_t num_rows) {
    const auto* numbers = read<int32_t>(rows);
    const bool exist = std::all_of(numbers, numbers + rows.numel(),
                                   [=](int32_t row) { return row >= kNone && row < num_rows; });
    MNMT_CHECK(exist, "`rows` must be -1 or rows of the buffers");
}

void check_filled(const Tensor& filled, int64_t bin_size) {
    const auto* counts = read<int32_t>(filled);
    for (int64_t bin = 0; bin < filled.size(0); ++bin) {
        MNMT_CHECK(counts[bin] >= 0 && counts[bin] <= bin_size, "`filled` must be within [0, bin_size]");
    }
}

// Zeroes the rows of each bin that hold no token.
template <typename Element>
void zero_tails(const Tensor& filled, int64_t bin_size, int64_t width, Element* buffers) {
    const auto* counts = read<int32_t>(filled);
    in_parallel(filled.size(0), bin_size * width * sizeof(Element), [=](int64_t bin) {
        Element* rows = buffers + bin * bin_size * width;
        std::fill(rows + counts[bin] * width, rows + bin_size * width, Element{});
    });
}

Tensor dispatch(const Tensor& tokens, const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    const int64_t num_rows = check_dispatch(tokens, rows, filled, bin_size);
    const Tensor from = contiguous(tokens), row_numbers = contiguous(rows), counts = contiguous(filled);
    check_rows(row_numbers, num_rows);
    check_filled(counts, bin_size);
    const int64_t top_k = rows.size(1), width = from.size(1);
    Tensor buffers = new_empty(from, {num_rows, width});
    with_element_type(from, [&](auto element) {
        using Element = decltype(element);
        const auto* elements = read<Element>(from);
        const auto* numbers = read<int32_t>(row_numbers);
        auto* to = write<Element>(buffers);
        in_parallel(from.size(0), width * sizeof(Element), [=](int64_t token) {
            for (int64_t choice = token * top_k; choice < (token + 1) * top_k; ++choice) {
                if (numbers[choice] != kNone) {
                    std::memcpy(to + numbers[choice] * width, elements + token * width,
                                width * sizeof(Element));
                }
            }
        });
        zero_tails(counts, bin_size, width, to);
    });
    return buffers;
}

Tensor combine(const Tensor& buffers, const std::optional<Tensor>& weights, const Tensor& rows,
               const Tensor& filled, int64_t bin_size) {
    check_combine(buffers, weights, rows, filled, bin_size);
    const Tensor from = contiguous(buffers), row_numbers = contiguous(rows);
    const std::optional<Tensor> scales = contiguous_if_any(weights);
    check_rows(row_numbers, from.size(0));
    const int64_t tokens = rows.size(0), top_k = rows.size(1), width = from.size(1);
    Tensor out = new_empty(from, {tokens, width});
    with_element_type(from, [&](auto element) {
        using Element = decltype(element);
        const auto* elements = read<Element>(from);
        const auto* numbers = read<int32_t>(row_numbers);
        const auto* factors = read<Wide<Element>>(scales);
        auto* to = write<Element>(out);
        in_parallel(tokens, width * sizeof(Element), [=](int64_t token) {
            const auto* of_token = factors == nullptr ? nullptr : factors + token * top_k;
            sum_rows(elements, of_token, numbers + token * top_k, top_k, width, to + token * width);
        });
    });
    return out;
}

std::tuple<Tensor, Tensor> combine_backward(const Tensor& grad, const Tensor& buffers, const Tensor& weights,
                                            const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    check_combine_backward(grad, buffers, weights, rows, filled, bin_size);
    const Tensor grads = contiguous(grad), from = contiguous(buffers), scales = contiguous(weights);
    const Tensor row_numbers = contiguous(rows), counts = contiguous(filled);
    check_rows(row_numbers, from.size(0));
    check_filled(counts, bin_size);
    const int64_t tokens = rows.size(0), top_k = rows.size(1), width = from.size(1);
    Tensor grad_buffers = new_empty(from, {from.size(0), width});
    Tensor grad_weights = new_empty(scales, scales.sizes());
    with_element_type(from, [&](auto element) {
        using Element = decltype(element);
        const auto *token_grads = read<Element>(grads), *elements = read<Element>(from);
        const auto* factors = read<Wide<Element>>(scales);
        const auto* numbers = read<int32_t>(row_numbers);
        auto* to_buffers = write<Element>(grad_buffers);
        auto* to_weights = write<Wide<Element>>(grad_weights);
        in_parallel(tokens, width * sizeof(Element), [=](int64_t token) {
            const int64_t choice = token * top_k;
            sum_rows_backward(token_grads + token * width, elements, factors + choice, numbers + choice,
                              top_k, width, to_buffers, to_weights + choice);
        });
        zero_tails(counts, bin_size, width, to_buffers);
    });
    return {grad_buffers, grad_weights};
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("dispatch", TORCH_BOX(&mnmt_moe::dispatch));
    library.impl("combine", TORCH_BOX(&mnmt_moe::combine));
    library.impl("combine_backward", TORCH_BOX(&mnmt_moe::combine_backward));
}
