// The preparation of every CUDA launch: the tensor's device becomes current, and its stream is returned.
#pragma once

#include <cuda_runtime_api.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/tensor.h>

namespace mnmt_moe {

inline cudaStream_t current_stream(const torch::stable::Tensor& tensor) {
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream));
    return static_cast<cudaStream_t>(stream);
}

// Makes the tensor's device the current one for as long as it lives.
class OnDeviceOf {
  public:
    explicit OnDeviceOf(const torch::stable::Tensor& tensor)
        : guard_(tensor.get_device_index()), stream_(current_stream(tensor)) {}

    cudaStream_t stream() const { return stream_; }

  private:
    torch::stable::accelerator::DeviceGuard guard_;
    cudaStream_t stream_;
};

}  // namespace mnmt_moe
