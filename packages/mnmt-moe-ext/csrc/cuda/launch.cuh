// The vocabulary of the kernels, and their launch. The kernels and the functions that launch them
// take raw pointers and include no torch header; with MNMT_MOE_EMULATED they run on the CPU (tests/emulator).
#pragma once

#ifdef MNMT_MOE_EMULATED
#include "emulator.h"
#else

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace mnmt_moe {

// Bytes that a block may have without asking.
constexpr size_t kSharedMemoryUnasked = 48 << 10;

inline void check_cuda(cudaError_t error) {
    if (error != cudaSuccess) {
        throw std::runtime_error(std::string("mnmt_moe_ext: ") + cudaGetErrorString(error));
    }
}

// The block's dynamic shared memory.
template <typename T>
__device__ T* dynamic_shared() {
    extern __shared__ uint4 block_memory[];
    return reinterpret_cast<T*>(block_memory);
}

// Launches nothing for an empty grid.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
    if (blocks == 0) {
        return;
    }
    if (shared_bytes > kSharedMemoryUnasked) {
        check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...));
}

inline void clear(void* memory, size_t bytes, cudaStream_t stream) {
    if (bytes != 0) {
        check_cuda(cudaMemsetAsync(memory, 0, bytes, stream));
    }
}

}  // namespace mnmt_moe

#endif
