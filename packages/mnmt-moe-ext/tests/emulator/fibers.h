// The threads of one block as fibers of one thread of the CPU, which take turns where they wait for each
// other.
//
// A thread runs until it ends or reaches a rendezvous: a collective of its warp or a barrier of its block.
// When no thread can run, the rendezvous that are complete let their threads go on. If there are none, some
// thread waits for one that never comes, which is an error here as it is undefined behaviour on a GPU.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace emulator {

constexpr int kWarpSize = 32;

enum class Kind { none, warp, block };

// What a thread waits for; threads meet if this is equal.
struct Rendezvous {
    Kind kind = Kind::none;
    int operation = 0;
    unsigned mask = 0;

    bool operator==(const Rendezvous& other) const {
        return kind == other.kind && operation == other.operation && mask == other.mask;
    }
};

using LaneValues = std::array<uint64_t, kWarpSize>;

struct Thread {
    ucontext_t context;
    int index;
    bool done = false;
    Rendezvous waits_for;
    uint64_t value = 0;   // what it brings
    LaneValues values{};  // what a warp's lanes brought
    uint64_t total = 0;   // what a block's threads brought, added up
};

// In which order threads and blocks take their turns: 0 forward, 1 backward, others shuffled with that seed.
std::vector<int> turn_order(int count, uint64_t order);

class Block {
  public:
    Block(int num_threads, uint64_t order, const std::function<void()>& kernel);

    // Runs all threads to their end. Throws std::runtime_error if they wait for each other in vain.
    void run();

    Thread& current() { return *current_; }

    // Waits for the rendezvous, called by the current thread.
    void meet(Rendezvous rendezvous, uint64_t value);

  private:
    static void enter(unsigned high, unsigned low);
    void start(Thread& thread, char* stack);
    bool run_ready();
    bool open_complete();
    bool open_warp(int first);
    bool open_block();
    [[noreturn]] void report_deadlock() const;

    std::vector<Thread> threads_;
    std::vector<int> turns_;
    const std::function<void()>& kernel_;
    ucontext_t scheduler_;
    Thread* current_ = nullptr;
};

}  // namespace emulator
