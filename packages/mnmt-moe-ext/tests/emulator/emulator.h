// What csrc/cuda/launch.cuh offers on a GPU, on the CPU: kernels run block by block, a fiber a thread
// (fibers.h).
//
// Not modelled: caches, streams, and races within a thread's turn. A race shows as a result that depends on
// the order of the turns, so run every kernel in several (`order`). Shared memory starts as NaNs.
#pragma once

#include <functional>

#include "fibers.h"
#include "vocabulary.h"

namespace emulator {

inline uint64_t order = 0;
inline Block* block = nullptr;
inline Index3 block_index;
inline std::vector<uint4> shared_memory;

// Of a block, in bytes; an H100's.
inline size_t shared_memory_limit = 227 << 10;

inline Index3 thread_index() { return {static_cast<unsigned>(block->current().index)}; }

// Runs a grid of one dimension.
inline void run_grid(int64_t blocks, int threads, size_t shared_bytes, const std::function<void()>& kernel) {
    for (const int index : turn_order(static_cast<int>(blocks), order)) {
        shared_memory.assign((shared_bytes + sizeof(uint4) - 1) / sizeof(uint4), uint4{~0u, ~0u, ~0u, ~0u});
        block_index = {static_cast<unsigned>(index)};
        Block running(threads, order, kernel);
        block = &running;
        running.run();
    }
}

template <typename T>
uint64_t to_lane_value(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(value));
    return bits;
}

template <typename T>
T from_lane_value(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

enum Operation {
    shuffle_xor,
    shuffle_up,
    shuffle,
    ballot,
    match_any,
    reduce_max,
    reduce_min,
    warp_barrier,
    barrier,
    count
};

inline int lane() { return block->current().index % kWarpSize; }

template <typename T>
const LaneValues& exchange(Operation operation, unsigned mask, T value) {
    block->meet({Kind::warp, operation, mask}, to_lane_value(value));
    return block->lane_values();
}

// Combines the values of the lanes in the mask.
template <typename Function>
uint32_t fold(const LaneValues& values, unsigned mask, uint32_t start, Function function) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
        if (mask >> lane & 1) {
            start = function(start, lane, static_cast<uint32_t>(values[lane]));
        }
    }
    return start;
}

}  // namespace emulator

#define threadIdx (emulator::thread_index())
#define blockIdx (emulator::block_index)

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int offset) {
    const int source = emulator::lane() ^ offset;
    return emulator::from_lane_value<T>(emulator::exchange(emulator::shuffle_xor, mask, value)[source]);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, int offset) {
    const int source = emulator::lane() - offset;
    return emulator::from_lane_value<T>(
        emulator::exchange(emulator::shuffle_up, mask, value)[source < 0 ? emulator::lane() : source]);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source) {
    return emulator::from_lane_value<T>(emulator::exchange(emulator::shuffle, mask, value)[source]);
}

inline unsigned __ballot_sync(unsigned mask, bool predicate) {
    const auto& values = emulator::exchange(emulator::ballot, mask, predicate);
    return emulator::fold(values, mask, 0,
                          [](uint32_t bits, int lane, uint32_t value) { return bits | value << lane; });
}

inline unsigned __match_any_sync(unsigned mask, int value) {
    const auto& values = emulator::exchange(emulator::match_any, mask, value);
    return emulator::fold(values, mask, 0, [&](uint32_t bits, int lane, uint32_t other) {
        return bits | static_cast<uint32_t>(other == static_cast<uint32_t>(value)) << lane;
    });
}

inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    const auto& values = emulator::exchange(emulator::reduce_max, mask, value);
    return emulator::fold(values, mask, value,
                          [](uint32_t best, int, uint32_t other) { return other > best ? other : best; });
}

inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    const auto& values = emulator::exchange(emulator::reduce_min, mask, value);
    return emulator::fold(values, mask, value,
                          [](uint32_t best, int, uint32_t other) { return other < best ? other : best; });
}

inline void __syncwarp() { emulator::exchange(emulator::warp_barrier, ~0u, 0); }

inline void __syncthreads() { emulator::block->meet({emulator::Kind::block, emulator::barrier, 0}, 0); }

inline int __syncthreads_count(bool predicate) {
    emulator::block->meet({emulator::Kind::block, emulator::count, 0}, predicate);
    return static_cast<int>(emulator::block->current().total);
}

namespace mnmt_moe {

constexpr size_t kSharedMemoryUnasked = 48 << 10;

inline size_t shared_memory_limit() { return emulator::shared_memory_limit; }

template <typename T>
T* dynamic_shared() {
    return reinterpret_cast<T*>(emulator::shared_memory.data());
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes, cudaStream_t,
            const Arguments&... arguments) {
    emulator::run_grid(blocks, threads, shared_bytes, [&] { kernel(arguments...); });
}

inline void clear(void* memory, size_t bytes, cudaStream_t) { std::memset(memory, 0, bytes); }

}  // namespace mnmt_moe
