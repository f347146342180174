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
#include <string>
#include <vector>

#include "races.h"

namespace emulator {

enum class Operation {
    none,
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

// What a thread waits for; threads meet if this is equal.
struct Rendezvous {
    Operation operation = Operation::none;
    unsigned mask = 0;  // lanes of a warp

    bool is_of_block() const { return operation >= Operation::barrier; }
    bool is_of_warp() const { return operation != Operation::none && !is_of_block(); }
    bool operator==(const Rendezvous& other) const {
        return operation == other.operation && mask == other.mask;
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

struct Warp {
    LaneValues values;  // that the lanes brought to their last rendezvous
    int barriers = 0;   // passed so far
};

class Block {
  public:
    // `backward`: the last thread takes its turn first.
    Block(int index, int num_threads, bool backward, const std::function<void()>& kernel);

    // Runs all threads to their end. Returns an error, or an empty string.
    std::string run();

    const Moment& now() const { return now_; }
    const Thread& current() const { return *current_; }
    const LaneValues& lane_values() const { return warps_[now_.warp].values; }

    // Waits for the rendezvous, called by the current thread.
    void meet(Rendezvous rendezvous, uint64_t value);

    // Ends the run with an error, called by the current thread. An exception would not do: the compiler takes
    // for granted that nothing is thrown by the calls that it adds to a kernel.
    [[noreturn]] void fail(const std::string& error);

  private:
    static void enter(unsigned high, unsigned low);
    void prepare(Thread& thread, char* stack);
    void resume(Thread& thread);
    bool run_ready();
    bool open_complete();
    bool open_warp(int first);
    bool open_block();
    std::string describe_deadlock() const;

    std::vector<Thread> threads_;
    std::vector<Warp> warps_;
    bool backward_;
    const std::function<void()>& kernel_;
    jmp_buf scheduler_;
    Moment now_;
    Thread* current_ = nullptr;
    std::string error_;
};

// Whether an address is on the stack of a thread, which no other thread uses.
bool is_on_a_stack(uintptr_t address);

}  // namespace emulator
