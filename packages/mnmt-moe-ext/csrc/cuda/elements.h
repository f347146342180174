// From tensors to typed pointers.
#pragma once

#include <cuda_bf16.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>

#include "../check.h"

namespace mnmt_moe {

template <typename Element>
const Element* read(const torch::stable::Tensor& tensor) {
    return static_cast<const Element*>(tensor.const_data_ptr());
}

template <typename Element>
const Element* read(const std::optional<torch::stable::Tensor>& tensor) {
    return tensor.has_value() ? read<Element>(*tensor) : nullptr;
}

template <typename Element>
Element* write(torch::stable::Tensor& tensor) {
    return static_cast<Element*>(tensor.mutable_data_ptr());
}

inline std::optional<torch::stable::Tensor> contiguous_if_any(
    const std::optional<torch::stable::Tensor>& tensor) {
    return tensor.has_value() ? std::optional(torch::stable::contiguous(*tensor)) : std::nullopt;
}

// Calls function(Element{}) with the tensor's element type.
template <typename Function>
void with_element_type(const torch::stable::Tensor& tensor, const char* name, const Function& function) {
    using torch::headeronly::ScalarType;
    if (tensor.scalar_type() == ScalarType::Float) {
        function(float{});
    } else {
        MNMT_CHECK(tensor.scalar_type() == ScalarType::BFloat16, "`", name,
                   "` on a GPU must be float32 or bfloat16");
        function(__nv_bfloat16{});
    }
}

}  // namespace mnmt_moe
