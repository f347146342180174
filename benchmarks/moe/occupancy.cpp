// Reads a line for each launch: architecture (80 or 90), registers, static bytes of shared memory, dynamic
// ones, threads of a block. Writes the blocks of it that a multiprocessor holds at a time, by CUDA's own
// rules.
#include <cuda_occupancy.h>

#include <iostream>

namespace {

// An A100 (80) or H100 (90): CUDA C++ Programming Guide, technical specifications per compute capability.
cudaOccDeviceProp properties(int architecture) {
    const size_t shared_kib = architecture == 90 ? 228 : 164;
    cudaOccDeviceProp device;
    device.computeMajor = architecture / 10;
    device.computeMinor = architecture % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = 2048;
    device.regsPerBlock = 65536;
    device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = shared_kib << 10;
    device.numSms = architecture == 90 ? 132 : 108;
    device.reservedSharedMemPerBlock = 1 << 10;
    device.sharedMemPerBlockOptin = (shared_kib << 10) - device.reservedSharedMemPerBlock;
    return device;
}

}  // namespace

int main() {
    int architecture, registers, threads;
    size_t static_bytes, dynamic_bytes;
    while (std::cin >> architecture >> registers >> static_bytes >> dynamic_bytes >> threads) {
        const cudaOccDeviceProp device = properties(architecture);
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = device.maxThreadsPerBlock;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = static_bytes;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = device.sharedMemPerBlockOptin;
        kernel.numBlockBarriers = 1;
        kernel.virtualResourceCount = 0;
        const cudaOccDeviceState state;
        cudaOccResult result{};
        const auto error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads,
                                                                   dynamic_bytes);
        if (error != CUDA_OCC_SUCCESS) {
            std::cerr << "the occupancy calculator refuses architecture " << architecture << "\n";
            return 1;
        }
        std::cout << result.activeBlocksPerMultiprocessor << "\n";
    }
}
