// The threads of one block as fibers of one CPU thread, which take turns where they wait for each other.
//
// A thread runs until it ends or reaches a collective of its warp or a barrier of its block. When no thread
// can run, those that all of a warp or a block have reached release them. If there is none, a thread waits
// for one that never comes: that is undefined behaviour on a GPU, and an error here.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "races.h"

namespace emulator {

// What threads wait for: at `barrier` all of a block, else all of a warp.
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
    barrier
};

struct Thread {
    ucontext_t context;  // to enter the kernel; from then on the thread continues at `position`
    jmp_buf position;    // swapping contexts would cost two system calls a turn
    bool started = false;
    bool done = false;
    Operation waits_for = Operation::none;
    uint64_t value = 0;  // that it brings there
};

class Block {
  public:
    static inline Block* running = nullptr;

    // Whole warps. `backward`: the last thread takes its turn first.
    Block(int index, int num_threads, bool backward, const std::function<void()>& kernel);

    // Runs all threads to their end. Returns an error, or an empty string.
    std::string run();

    // The methods from here on are for the thread whose turn it is.
    const Moment& now() const { return now_; }

    // Waits for the warp or the block. Returns the values of its threads.
    const uint64_t* meet(Operation operation, uint64_t value = 0);

    // Ends the run with an error. An exception would not do: the compiler takes for granted that nothing is
    // thrown by the calls that it adds to a kernel.
    [[noreturn]] void fail(const std::string& error);

  private:
    static void enter();
    void resume(size_t index);
    bool run_ready();
    bool open_complete();
    bool open(size_t first, size_t count, bool of_block);
    std::string describe_deadlock() const;

    std::vector<Thread> threads_;
    std::vector<uint64_t> values_;    // that the threads brought to what they last waited for
    std::vector<int> warp_barriers_;  // that each warp has passed
    bool backward_;
    const std::function<void()>& kernel_;
    jmp_buf scheduler_;
    Moment now_;
    std::string error_;
};

// Whether an address is on the stack of a thread, which no other thread uses.
bool is_on_a_stack(uintptr_t address);

}  // namespace emulator
