// `dispatch` and `combine` on a GPU.
#include "rows.cuh"

#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "../row_checks.h"
#include "../tensors.h"
#include "rows_backward.cuh"
#include "stream.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

Tensor dispatch(const Tensor& tokens, const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    const int64_t num_rows = check_dispatch(tokens, rows, filled, bin_size);
    const OnDeviceOf device(tokens);
    const Tensor from = contiguous(tokens), row_numbers = contiguous(rows), counts = contiguous(filled);
    Tensor buffers = new_empty(from, {num_rows, from.size(1)});
    with_element_type(from, "tokens", [&](auto element) {
        using T = decltype(element);
        launch_dispatch<T>({read<T>(from), read<int32_t>(row_numbers), static_cast<int>(row_numbers.size(1)),
                            Bins{read<int32_t>(counts), counts.size(0), bin_size}, from.size(0), from.size(1),
                            write<T>(buffers)},
                           device.stream());
    });
    return buffers;
}

Tensor combine(const Tensor& buffers, const std::optional<Tensor>& weights, const Tensor& rows,
               const Tensor& filled, int64_t bin_size) {
    check_combine(buffers, weights, rows, filled, bin_size);
    const OnDeviceOf device(buffers);
    const Tensor from = contiguous(buffers), row_numbers = contiguous(rows);
    const std::optional<Tensor> scales = contiguous_if_any(weights);
    Tensor tokens = new_empty(from, {row_numbers.size(0), from.size(1)});
    with_element_type(from, "buffers", [&](auto element) {
        using T = decltype(element);
        launch_combine<T>({read<T>(from), read<float>(scales), read<int32_t>(row_numbers),
                           static_cast<int>(row_numbers.size(1)), from.size(0), row_numbers.size(0),
                           from.size(1), write<T>(tokens)},
                          device.stream());
    });
    return tokens;
}

std::tuple<Tensor, Tensor> combine_backward(const Tensor& grad, const Tensor& buffers, const Tensor& weights,
                                            const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    check_combine_backward(grad, buffers, weights, rows, filled, bin_size);
    const OnDeviceOf device(buffers);
    const Tensor grads = contiguous(grad), from = contiguous(buffers), scales = contiguous(weights);
    const Tensor row_numbers = contiguous(rows), counts = contiguous(filled);
    Tensor grad_buffers = new_empty(from, from.sizes());
    Tensor grad_weights = new_empty(scales, scales.sizes());
    with_element_type(from, "buffers", [&](auto element) {
        using T = decltype(element);
        launch_combine_backward<T>(
            {read<T>(grads), read<T>(from), read<float>(scales), read<int32_t>(row_numbers),
             static_cast<int>(row_numbers.size(1)), Bins{read<int32_t>(counts), counts.size(0), bin_size},
             row_numbers.size(0), from.size(1), write<T>(grad_buffers), write<float>(grad_weights)},
            device.stream());
    });
    return {grad_buffers, grad_weights};
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("dispatch", TORCH_BOX(&mnmt_moe::dispatch));
    library.impl("combine", TORCH_BOX(&mnmt_moe::combine));
    library.impl("combine_backward", TORCH_BOX(&mnmt_moe::combine_backward));
}
