// Typed pointers to the elements of tensors.
#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>

namespace mnmt_moe {

template <typename Element>
const Element* read(const torch::stable::Tensor& tensor) {
    return static_cast<const Element*>(tensor.const_data_ptr());
}

// Null without a tensor.
template <typename Element>
const Element* read(const std::optional<torch::stable::Tensor>& tensor) {
    return tensor.has_value() ? read<Element>(*tensor) : nullptr;
}

template <typename Element>
Element* write(const torch::stable::Tensor& tensor) {
    return static_cast<Element*>(tensor.mutable_data_ptr());
}

inline std::optional<torch::stable::Tensor> contiguous_if_any(
    const std::optional<torch::stable::Tensor>& tensor) {
    return tensor.has_value() ? std::optional(torch::stable::contiguous(*tensor)) : std::nullopt;
}

}  // namespace mnmt_moe
