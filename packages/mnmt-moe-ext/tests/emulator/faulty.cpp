// Kernels that are wrong on a GPU, to show that the emulator finds out, and some that are right.
#include "warp.cuh"

using namespace mnmt_moe;

// Defines a kernel, and a C function that runs it in blocks of 64 threads and returns null or what went
// wrong.
#define KERNEL(name)                                                                                \
    static void name(int* out);                                                                     \
    extern "C" const char* run_##name(int64_t blocks, int* out) {                                   \
        return emulator::caught([&] { launch(name, blocks, 64, 64 * sizeof(int), nullptr, out); }); \
    }                                                                                               \
    static void name(int* out)

KERNEL(half_a_warp_votes) {
    if (lane_index() < 16) {
        out[threadIdx.x] = static_cast<int>(__ballot_sync(kAllLanes, true));
    }
}

KERNEL(one_thread_misses_the_barrier) {
    if (threadIdx.x != 5) {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

KERNEL(lanes_call_different_collectives) {
    out[threadIdx.x] = lane_index() % 2 == 0 ? static_cast<int>(__ballot_sync(kAllLanes, true))
                                             : __shfl_sync(kAllLanes, lane_index(), 0);
}

// Hands the index of each thread of a group to the thread before it, that of the first to the last.
template <typename Function>
static void pass_on(int* out, int group, const Function& wait) {
    int* shared = dynamic_shared<int>();
    const int thread = static_cast<int>(threadIdx.x);
    const int first = thread / group * group;
    shared[thread] = thread;
    wait();
    out[thread] = shared[first + (thread - first + 1) % group];
}

KERNEL(block_does_not_wait) {
    pass_on(out, 64, [] {});
}

KERNEL(block_waits_by_warps) {
    pass_on(out, 64, [] { __syncwarp(); });
}

KERNEL(block_waits) {
    pass_on(out, 64, [] { __syncthreads(); });
}

KERNEL(warp_shuffles) {
    pass_on(out, 32, [] { __shfl_sync(kAllLanes, 0, 0); });
}

KERNEL(warp_waits) {
    pass_on(out, 32, [] { __syncwarp(); });
}

KERNEL(counts) { ++*out; }

KERNEL(counts_atomically) { atomicAdd(out, 1); }

KERNEL(reads_an_atomic_count) {
    atomicAdd(out, 1);
    out[threadIdx.x + 1] = *out;
}

KERNEL(multiplies_in_int32) {
    const int row = 1 << 20 | static_cast<int>(threadIdx.x);
    const int width = 4096 + static_cast<int>(blockIdx.x);
    out[threadIdx.x] = row * width;
}
