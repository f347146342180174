#include "emulator.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace emulator {
namespace {

Block* block = nullptr;  // that runs, or null
Races races;
std::vector<uint4> shared;

// That a block may have on every GPU, in bytes: of compute capability 8.6, 8.9 and 12.0.
constexpr size_t kLeastSharedMemory = 99 << 10;

void run_block(int index, int threads, const std::function<void()>& kernel) {
    std::fill(shared.begin(), shared.end(), uint4{~0u, ~0u, ~0u, ~0u});
    races.forget(reinterpret_cast<uintptr_t>(shared.data()), sizeof(uint4) * shared.size());
    Block running(index, threads, emulator_backward != 0, kernel);
    block = &running;
    const std::string error = running.run();
    block = nullptr;
    if (!error.empty()) {
        throw std::runtime_error(error);
    }
}

const LaneValues& exchange(Operation operation, unsigned mask, uint64_t value) {
    block->meet({operation, mask}, value);
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

}  // namespace

Index3 thread_index() { return {static_cast<unsigned>(block->current().index)}; }
Index3 block_index() { return {static_cast<unsigned>(block->now().block)}; }
void* shared_memory() { return shared.data(); }
int lane() { return block->now().lane; }

void run_grid(int64_t blocks, int threads, size_t shared_bytes, const std::function<void()>& kernel) {
    if (shared_bytes > kLeastSharedMemory) {
        fail("a block has " + std::to_string(shared_bytes) + " bytes of shared memory");
    }
    races.clear();
    shared.resize((shared_bytes + sizeof(uint4) - 1) / sizeof(uint4));
    const int64_t count = std::min(blocks, emulator_last_blocks);
    for (int64_t turn = 0; turn < count; ++turn) {
        const int64_t index = emulator_backward ? blocks - 1 - turn : blocks - count + turn;
        run_block(static_cast<int>(index), threads, kernel);
    }
}

const char* caught(const std::function<void()>& function) {
    static std::string message;
    try {
        function();
    } catch (const std::exception& error) {
        message = error.what();
        return message.c_str();
    }
    return nullptr;
}

void access(const void* memory, size_t bytes, Access access) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    if (block == nullptr || is_on_a_stack(address) || !races.add(address, bytes, access, block->now())) {
        return;
    }
    const char* const verbs[] = {" reads", " writes", " adds to"};
    fail("race: thread " + std::to_string(block->current().index) + " of block " +
         std::to_string(block->now().block) + verbs[static_cast<int>(access)] +
         " what another thread uses, and nothing orders the two.");
}

void fail(const std::string& error) {
    if (block == nullptr) {
        throw std::runtime_error(error);
    }
    block->fail(error);
}

uint64_t shuffle_bits(Operation operation, unsigned mask, uint64_t bits, int source) {
    return exchange(operation, mask, bits)[source];
}

}  // namespace emulator

using namespace emulator;

unsigned __ballot_sync(unsigned mask, bool predicate) {
    return fold(exchange(Operation::ballot, mask, predicate), mask, 0,
                [](uint32_t bits, int lane, uint32_t value) { return bits | value << lane; });
}

unsigned __match_any_sync(unsigned mask, int value) {
    const auto& values = exchange(Operation::match_any, mask, value);
    return fold(values, mask, 0, [&](uint32_t bits, int lane, uint32_t other) {
        return bits | static_cast<uint32_t>(other == static_cast<uint32_t>(value)) << lane;
    });
}

unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    return fold(exchange(Operation::reduce_max, mask, value), mask, value,
                [](uint32_t best, int, uint32_t other) { return std::max(best, other); });
}

unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    return fold(exchange(Operation::reduce_min, mask, value), mask, value,
                [](uint32_t best, int, uint32_t other) { return std::min(best, other); });
}

void __syncwarp() { exchange(Operation::warp_barrier, ~0u, 0); }

void __syncthreads() { block->meet({Operation::barrier}, 0); }

int __syncthreads_count(bool predicate) {
    block->meet({Operation::count}, predicate);
    return static_cast<int>(block->current().total);
}
