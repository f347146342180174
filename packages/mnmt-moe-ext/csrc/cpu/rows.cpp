// `dispatch` and `combine` on the CPU.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>

#include "../row_checks.h"
#include "../tensors.h"
#include "isa.h"
#include "row_kernels.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::parallel_for;

// Below this many bytes a thread costs more to wake than it saves.
constexpr int64_t kBytesPerThread = 1 << 16;

// Output that the caches would not hold until it is read is written past them.
constexpr int64_t kStreamedBytes = 8 << 20;
constexpr int64_t kLineBytes = 64;

template <typename Element>
RowKernels<Element> best_row_kernels(bool streamed) {
    switch (instruction_set()) {
#if defined(MNMT_MOE_X86)
        case Isa::avx512:
            return avx512::row_kernels<Element>(streamed);
        case Isa::avx2:
            return avx2::row_kernels<Element>(streamed);
#endif
        default:
            return baseline::row_kernels<Element>(streamed);
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

// The kernels that write `out`.
template <typename Element>
RowKernels<Element> kernels_for(const Tensor& out) {
    const int64_t row_bytes = out.size(1) * static_cast<int64_t>(sizeof(Element));
    const bool large = out.size(0) * row_bytes >= kStreamedBytes;
    const bool whole_lines =
        row_bytes % kLineBytes == 0 && reinterpret_cast<uintptr_t>(out.const_data_ptr()) % kLineBytes == 0;
    return best_row_kernels<Element>(large && whole_lines);
}

template <typename Element>
int64_t rows_per_thread(int64_t width) {
    return std::max<int64_t>(1, kBytesPerThread / (std::max<int64_t>(1, width) * sizeof(Element)));
}

// Calls function(begin, end) over ranges of the tokens; the function returns whether all their rows exist.
template <typename Element, typename Function>
void for_tokens(int64_t tokens, int64_t width, Function function) {
    std::atomic<bool> exist = true;
    parallel_for(0, tokens, rows_per_thread<Element>(width), [&](int64_t begin, int64_t end) {
        if (!function(begin, end)) {
            exist = false;
        }
    });
    MNMT_CHECK(exist, "`rows` must be -1 or rows of the buffers");
}

void check_filled(const Tensor& filled, int64_t bin_size) {
    const auto* counts = read<int32_t>(filled);
    for (int64_t bin = 0; bin < filled.size(0); ++bin) {
        MNMT_CHECK(counts[bin] >= 0 && counts[bin] <= bin_size, "`filled` must be within [0, bin_size]");
    }
}

bool has_tails(const int32_t* filled, int64_t bins, int64_t bin_size) {
    return std::any_of(filled, filled + bins, [&](int32_t rows) { return rows < bin_size; });
}

// Zeroes the rows of each bin that hold no token.
template <typename Element>
void zero_tails(const Tensor& buffers, const Tensor& filled, int64_t bin_size) {
    const int64_t width = buffers.size(1);
    const auto kernels = kernels_for<Element>(buffers);
    const auto* counts = read<int32_t>(filled);
    if (!has_tails(counts, filled.size(0), bin_size)) {
        return;
    }
    auto* elements = write<Element>(buffers);
    parallel_for(0, buffers.size(0), rows_per_thread<Element>(width), [&](int64_t begin, int64_t end) {
        for (int64_t bin = begin / bin_size; bin * bin_size < end; ++bin) {
            const int64_t first = std::max(begin, bin * bin_size + counts[bin]);
            const int64_t last = std::min(end, (bin + 1) * bin_size);
            if (first < last) {
                kernels.zero(elements + first * width, (last - first) * width);
            }
        }
    });
}

Tensor dispatch(const Tensor& tokens, const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    const int64_t num_rows = check_dispatch(tokens, rows, filled, bin_size);
    const Tensor from = contiguous(tokens), row_numbers = contiguous(rows), counts = contiguous(filled);
    check_filled(counts, bin_size);
    const int64_t width = from.size(1);
    Tensor buffers = new_empty(from, {num_rows, width});
    with_element_type(from, [&](auto element) {
        using Element = decltype(element);
        const auto kernels = kernels_for<Element>(buffers);
        const RowPlan plan{read<int32_t>(row_numbers), static_cast<int>(rows.size(1)), num_rows, width};
        const DispatchCall<Element> call{read<Element>(from), write<Element>(buffers)};
        for_tokens<Element>(from.size(0), width, [&](int64_t begin, int64_t end) {
            return kernels.dispatch(plan, call, begin, end);
        });
        zero_tails<Element>(buffers, counts, bin_size);
    });
    return buffers;
}

Tensor combine(const Tensor& buffers, const std::optional<Tensor>& weights, const Tensor& rows,
               const Tensor& filled, int64_t bin_size) {
    check_combine(buffers, weights, rows, filled, bin_size);
    const Tensor from = contiguous(buffers), row_numbers = contiguous(rows);
    const std::optional<Tensor> scales = contiguous_if_any(weights);
    const int64_t tokens = rows.size(0), width = from.size(1);
    Tensor out = new_empty(from, {tokens, width});
    with_element_type(from, [&](auto element) {
        using Element = decltype(element);
        const auto kernels = kernels_for<Element>(out);
        const RowPlan plan{read<int32_t>(row_numbers), static_cast<int>(rows.size(1)), from.size(0), width};
        const CombineCall<Element> call{read<Element>(from), read<Weight<Element>>(scales),
                                        write<Element>(out)};
        for_tokens<Element>(tokens, width, [&](int64_t begin, int64_t end) {
            return kernels.combine(plan, call, begin, end);
        });
    });
    return out;
}

std::tuple<Tensor, Tensor> combine_backward(const Tensor& grad, const Tensor& buffers, const Tensor& weights,
                                            const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    check_combine_backward(grad, buffers, weights, rows, filled, bin_size);
    const Tensor grads = contiguous(grad), from = contiguous(buffers), scales = contiguous(weights);
    const Tensor row_numbers = contiguous(rows), counts = contiguous(filled);
    check_filled(counts, bin_size);
    const int64_t tokens = rows.size(0), width = from.size(1);
    Tensor grad_buffers = new_empty(from, {from.size(0), width});
    Tensor grad_weights = new_empty(scales, scales.sizes());
    with_element_type(from, [&](auto element) {
        using Element = decltype(element);
        const auto kernels = kernels_for<Element>(grad_buffers);
        const RowPlan plan{read<int32_t>(row_numbers), static_cast<int>(rows.size(1)), from.size(0), width};
        const CombineBackwardCall<Element> call{read<Element>(grads), read<Element>(from),
                                                read<Weight<Element>>(scales), write<Element>(grad_buffers),
                                                write<Weight<Element>>(grad_weights)};
        for_tokens<Element>(tokens, width, [&](int64_t begin, int64_t end) {
            return kernels.combine_backward(plan, call, begin, end);
        });
        zero_tails<Element>(grad_buffers, counts, bin_size);
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
