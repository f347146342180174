#include "emulator.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace emulator {
namespace {

Races races;
std::vector<uint4> shared;

// That a block may have on every GPU, in bytes: of compute capability 8.6, 8.9 and 12.0.
constexpr size_t kLeastSharedMemory = 99 << 10;

void run_block(int index, int threads, const std::function<void()>& kernel) {
    std::fill(shared.begin(), shared.end(), uint4{~0u, ~0u, ~0u, ~0u});
    races.forget(reinterpret_cast<uintptr_t>(shared.data()), sizeof(uint4) * shared.size());
    const std::string error = Block(index, threads, emulator_backward != 0, kernel).run();
    if (!error.empty()) {
        throw std::runtime_error(error);
    }
}

// The values of the lanes.
const uint64_t* exchange(Operation operation, unsigned mask, uint64_t value) {
    if (mask != ~0u) {
        fail("a collective of some lanes is not modelled.");
    }
    return Block::running->meet(operation, value);
}

// A bit for each lane whose value is the given one.
unsigned lanes_with(const uint64_t* values, uint64_t value) {
    unsigned lanes = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) {
        lanes |= static_cast<unsigned>(values[lane] == value) << lane;
    }
    return lanes;
}

}  // namespace

Index3 thread_index() { return {static_cast<unsigned>(Block::running->now().thread())}; }
Index3 block_index() { return {static_cast<unsigned>(Block::running->now().block)}; }
void* shared_memory() { return shared.data(); }
int lane() { return Block::running->now().lane; }

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
    if (Block::running == nullptr || is_on_a_stack(address)) {
        return;
    }
    const Moment& now = Block::running->now();
    if (races.add(address, bytes, access, now)) {
        const char* const verbs[] = {" reads", " writes", " adds to"};
        fail("race: thread " + std::to_string(now.thread()) + " of block " + std::to_string(now.block) +
             verbs[static_cast<int>(access)] + " what another thread uses, and nothing orders the two.");
    }
}

void fail(const std::string& error) {
    if (Block::running == nullptr) {
        throw std::runtime_error(error);
    }
    Block::running->fail(error);
}

uint64_t shuffle_bits(Operation operation, unsigned mask, uint64_t bits, int source) {
    return exchange(operation, mask, bits)[source];
}

}  // namespace emulator

using namespace emulator;

unsigned __ballot_sync(unsigned mask, bool predicate) {
    return lanes_with(exchange(Operation::ballot, mask, predicate), 1);
}

unsigned __match_any_sync(unsigned mask, int value) {
    const auto bits = static_cast<uint64_t>(value);
    return lanes_with(exchange(Operation::match_any, mask, bits), bits);
}

unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    const uint64_t* values = exchange(Operation::reduce_max, mask, value);
    return static_cast<unsigned>(*std::max_element(values, values + kWarpSize));
}

unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    const uint64_t* values = exchange(Operation::reduce_min, mask, value);
    return static_cast<unsigned>(*std::min_element(values, values + kWarpSize));
}

void __syncwarp() { Block::running->meet(Operation::warp_barrier); }

void __syncthreads() { Block::running->meet(Operation::barrier); }
