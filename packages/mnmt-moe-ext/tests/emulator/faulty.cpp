// Kernels that are wrong on a GPU, to show that the emulator finds out.
#include <stdexcept>
#include <string>

#include "warp.cuh"

namespace {

using namespace mnmt_moe;

__global__ void half_a_warp_votes(int* out) {
    if (lane_index() < 16) {
        out[threadIdx.x] = static_cast<int>(__ballot_sync(kAllLanes, true));
    }
}

__global__ void one_thread_misses_the_barrier(int* out) {
    if (threadIdx.x != 5) {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

__global__ void lanes_call_different_collectives(int* out) {
    out[threadIdx.x] = lane_index() % 2 == 0 ? static_cast<int>(__ballot_sync(kAllLanes, true))
                                             : __shfl_sync(kAllLanes, lane_index(), 0);
}

__global__ void neighbours_race(int* out) {
    int* shared = dynamic_shared<int>();
    shared[threadIdx.x] = static_cast<int>(threadIdx.x);
    out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}

__global__ void neighbours_wait(int* out) {
    int* shared = dynamic_shared<int>();
    shared[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}

}  // namespace

// Runs a kernel with 64 threads; returns null, or what went wrong.
extern "C" const char* run_faulty(int64_t which, int* out) {
    void (*const kernels[])(int*) = {half_a_warp_votes, one_thread_misses_the_barrier,
                                     lanes_call_different_collectives, neighbours_race, neighbours_wait};
    static std::string message;
    try {
        launch(kernels[which], 1, 64, 64 * sizeof(int), nullptr, out);
    } catch (const std::runtime_error& error) {
        message = error.what();
        return message.c_str();
    }
    return nullptr;
}
