// The preparation of every CUDA launch: the tensor's device becomes current, its stream is returned, and
// its element type chosen.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/tensor.h>

#include "../check.h"

namespace mnmt_moe {

inline cudaStream_t current_stream(const Tensor& tensor) {
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream));
    return static_cast<cudaStream_t>(stream);
}

// Makes the tensor's device the current one for as long as it lives.
class OnDeviceOf {
  public:
    explicit OnDeviceOf(const Tensor& tensor)
        : guard_(tensor.get_device_index()), stream_(current_stream(tensor)) {}

    cudaStream_t stream() const { return stream_; }

  private:
    torch::stable::accelerator::DeviceGuard guard_;
    cudaStream_t stream_;
};

// Calls function(Element{}) with the tensor's element type.
template <typename Function>
void with_element_type(const Tensor& tensor, const char* name, const Function& function) {
    if (tensor.scalar_type() == ScalarType::Float) {
        function(float{});
    } else {
        MNMT_CHECK(tensor.scalar_type() == ScalarType::BFloat16, "`", name,
                   "` on a GPU must be float32 or bfloat16");
        function(__nv_bfloat16{});
    }
}

}  // namespace mnmt_moe
