// What csrc/cuda/launch.cuh offers on a GPU, on the CPU: kernels run block by block, a fiber a thread
// (fibers.h). The compiler adds calls to them, so that races (races.h) and overflows of signed integers end a
// launch with an error (sanitizers.cpp); implicit conversions that may lose bits do not compile. Shared
// memory starts as NaNs.
//
// Not modelled: caches, streams, threads that wait for another block, and collectives of some lanes of a
// warp. Not found: reads out of bounds, and casts that lose bits. What atomic operations return depends on
// the order of turns: run kernels forward and `backward` to see whether results do.
#pragma once

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "fibers.h"
#include "vocabulary.h"

// Options of all launches, which tests set.
extern "C" {
inline int64_t emulator_backward = 0;
inline int64_t emulator_last_blocks = INT64_MAX;  // run only so many, the last of a grid
}

namespace emulator {

// Scratch memory is NaNs up to here and zeros beyond, which `clear` leaves: writing terabytes takes long.
constexpr size_t kScratchFilled = size_t{1} << 27;

Index3 thread_index();
Index3 block_index();
void* shared_memory();

// Runs a grid of one dimension. Throws std::runtime_error for what is wrong with a kernel.
void run_grid(int64_t blocks, int threads, size_t shared_bytes, const std::function<void()>& kernel);

// Runs function. Returns null, or the message of what it throws.
const char* caught(const std::function<void()>& function);

// Ends the launch with an error.
[[noreturn]] void fail(const std::string& error);

// For the thread whose turn it is, from here on.
void access(const void* address, size_t bytes, Access access);
int lane();
uint64_t shuffle_bits(Operation operation, unsigned mask, uint64_t bits, int source);

template <typename T>
T shuffle(Operation operation, unsigned mask, T value, int source) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(value));
    bits = shuffle_bits(operation, mask, bits, source);
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

}  // namespace emulator

#define threadIdx (emulator::thread_index())
#define blockIdx (emulator::block_index())

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int offset) {
    return emulator::shuffle(emulator::Operation::shuffle_xor, mask, value, emulator::lane() ^ offset);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, int offset) {
    const int source = emulator::lane() - offset;
    return emulator::shuffle(emulator::Operation::shuffle_up, mask, value,
                             source < 0 ? emulator::lane() : source);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source) {
    return emulator::shuffle(emulator::Operation::shuffle, mask, value, source);
}

unsigned __ballot_sync(unsigned mask, bool predicate);
unsigned __match_any_sync(unsigned mask, int value);
unsigned __reduce_max_sync(unsigned mask, unsigned value);
unsigned __reduce_min_sync(unsigned mask, unsigned value);
void __syncwarp();
void __syncthreads();

template <typename Integer>
[[gnu::no_sanitize("thread")]] Integer atomicAdd(Integer* address, Integer value) {
    emulator::access(address, sizeof(Integer), emulator::Access::atomic);
    const Integer old = *address;
    *address = old + value;
    return old;
}

namespace mnmt_moe {

template <typename T>
T* dynamic_shared() {
    return static_cast<T*>(emulator::shared_memory());
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes, cudaStream_t,
            const Arguments&... arguments) {
    emulator::run_grid(blocks, threads, shared_bytes, [&] { kernel(arguments...); });
}

inline void clear(void* memory, size_t bytes, cudaStream_t) {
    std::memset(memory, 0, std::min(bytes, emulator::kScratchFilled));
}

}  // namespace mnmt_moe
