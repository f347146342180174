// `dispatch` and `combine` on a GPU.
#include "rows.cuh"

#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "../row_checks.h"
#include "../tensors.h"
#include "stream.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

// Contiguous arguments that the three operators share.
struct Arguments {
    Arguments(const Tensor& rows_, const std::optional<Tensor>& weights_, const Tensor& filled_,
              int64_t bin_size_)
        : rows(contiguous(rows_)),
          filled(contiguous(filled_)),
          weights(contiguous_if_any(weights_)),
          bin_size(bin_size_) {}

    Choices choices() const {
        return {read<int32_t>(rows),
                read<float>(weights),
                static_cast<int>(rows.size(1)),
                rows.size(0),
                {read<int32_t>(filled), filled.size(0), bin_size}};
    }

    Tensor rows, filled;
    std::optional<Tensor> weights;
    int64_t bin_size;
};

Tensor dispatch(const Tensor& tokens, const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    const int64_t num_rows = check_dispatch(tokens, rows, filled, bin_size);
    const OnDeviceOf device(tokens);
    const Arguments arguments(rows, std::nullopt, filled, bin_size);
    const Tensor from = contiguous(tokens);
    Tensor buffers = new_empty(from, {num_rows, from.size(1)});
    with_element_type(from, "tokens", [&](auto element) {
        using T = decltype(element);
        launch_dispatch(arguments.choices(), from.size(1), read<T>(from), write<T>(buffers), device.stream());
    });
    return buffers;
}

Tensor combine(const Tensor& buffers, const std::optional<Tensor>& weights, const Tensor& rows,
               const Tensor& filled, int64_t bin_size) {
    check_combine(buffers, weights, rows, filled, bin_size);
    const OnDeviceOf device(buffers);
    const Arguments arguments(rows, weights, filled, bin_size);
    const Tensor from = contiguous(buffers);
    Tensor tokens = new_empty(from, {rows.size(0), from.size(1)});
    with_element_type(from, "buffers", [&](auto element) {
        using T = decltype(element);
        launch_combine(arguments.choices(), from.size(1), read<T>(from), write<T>(tokens), device.stream());
    });
    return tokens;
}

std::tuple<Tensor, Tensor> combine_backward(const Tensor& grad, const Tensor& buffers, const Tensor& weights,
                                            const Tensor& rows, const Tensor& filled, int64_t bin_size) {
    check_combine_backward(grad, buffers, weights, rows, filled, bin_size);
    const OnDeviceOf device(buffers);
    const Arguments arguments(rows, weights, filled, bin_size);
    const Tensor grads = contiguous(grad), from = contiguous(buffers);
    Tensor grad_buffers = new_empty(from, from.sizes());
    Tensor grad_weights = new_empty(weights, weights.sizes());
    with_element_type(from, "buffers", [&](auto element) {
        using T = decltype(element);
        launch_combine_backward(arguments.choices(), from.size(1), read<T>(grads), read<T>(from),
                                write<T>(grad_buffers), write<float>(grad_weights), device.stream());
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
