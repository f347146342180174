// The threads of one block as fibers of one CPU thread, which take turns where they wait for each other.
//
// A thread runs until it ends or reaches a rendezvous: a collective of its warp or a barrier of its block.
// When no thread can run, the complete rendezvous release their threads. If there is none, a thread waits for
// one that never comes: that is undefined behaviour on a GPU, and an error here.
#pragma once

#include <setjmp.h>
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
    ucontext_t context;  // to enter the kernel; from then on the thread continues at `position`
    jmp_buf position;    // swapping contexts would cost two system calls a turn
    int index;
    bool started = false;
    bool done = false;
    Rendezvous waits_for;
    uint64_t value = 0;  // the thread's own
    uint64_t total = 0;  // the sum over the block
};

// The turns of threads or blocks. Order 0 is forward, 1 is backward, any other is a seed that shuffles.
std::vector<int> turn_order(int count, uint64_t order);

class Block {
  public:
    Block(int num_threads, uint64_t order, const std::function<void()>& kernel);

    // Runs all threads to their end. Throws std::runtime_error if one waits in vain.
    void run();

    Thread& current() { return *current_; }

    // The values that the lanes of the current thread's warp brought to their last rendezvous.
    const LaneValues& lane_values() const { return lane_values_[current_->index / kWarpSize]; }

    // Waits for the rendezvous, called by the current thread.
    void meet(Rendezvous rendezvous, uint64_t value);

  private:
    static void enter(unsigned high, unsigned low);
    void prepare(Thread& thread, char* stack);
    void resume(Thread& thread);
    bool run_ready();
    bool open_complete();
    bool open_warp(int first);
    bool open_block();
    [[noreturn]] void report_deadlock() const;

    std::vector<Thread> threads_;
    std::vector<int> turns_;
    std::vector<LaneValues> lane_values_;  // of each warp
    const std::function<void()>& kernel_;
    jmp_buf scheduler_;
    Thread* current_ = nullptr;
};

}  // namespace emulator
