// Kernels that are wrong on a GPU, to show that the emulator finds out, and some that are right.
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

// Hands each thread's index to the thread before in the group, a block or a warp; the last one's to the
// first.
template <typename Function>
__device__ void pass_on(int* out, int group, const Function& wait) {
    int* shared = dynamic_shared<int>();
    const int thread = static_cast<int>(threadIdx.x);
    const int first = thread / group * group;
    shared[thread] = thread;
    wait();
    out[thread] = shared[first + (thread - first + 1) % group];
}

__global__ void block_does_not_wait(int* out) {
    pass_on(out, 64, [] {});
}

__global__ void block_waits_by_warps(int* out) {
    pass_on(out, 64, [] { __syncwarp(); });
}

__global__ void block_waits(int* out) {
    pass_on(out, 64, [] { __syncthreads(); });
}

__global__ void warp_shuffles(int* out) {
    pass_on(out, 32, [] { __shfl_sync(kAllLanes, 0, 0); });
}

__global__ void warp_waits(int* out) {
    pass_on(out, 32, [] { __syncwarp(); });
}

__global__ void counts(int* out) { ++*out; }

__global__ void counts_atomically(int* out) { atomicAdd(out, 1); }

__global__ void reads_an_atomic_count(int* out) {
    atomicAdd(out, 1);
    out[threadIdx.x + 1] = *out;
}

__global__ void multiplies_in_int32(int* out) {
    const int row = 1 << 20 | static_cast<int>(threadIdx.x);
    const int width = 4096 + static_cast<int>(blockIdx.x);
    out[threadIdx.x] = row * width;
}

}  // namespace

// Runs a kernel in blocks of 64 threads; returns null, or what went wrong.
extern "C" const char* run_faulty(int64_t which, int64_t blocks, int* out) {
    void (*const kernels[])(int*) = {half_a_warp_votes,
                                     one_thread_misses_the_barrier,
                                     lanes_call_different_collectives,
                                     block_does_not_wait,
                                     block_waits_by_warps,
                                     block_waits,
                                     warp_shuffles,
                                     warp_waits,
                                     counts,
                                     counts_atomically,
                                     reads_an_atomic_count,
                                     multiplies_in_int32};
    return emulator::caught([&] { launch(kernels[which], blocks, 64, 64 * sizeof(int), nullptr, out); });
}
