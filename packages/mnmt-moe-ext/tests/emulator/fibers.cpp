#include "fibers.h"

#include <algorithm>

namespace emulator {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kMaxThreads = 1024;

alignas(64) char stacks[kMaxThreads][kStackBytes];

// The lanes of a warp that wait for a rendezvous.
unsigned lanes_at(const Thread* warp, int lanes, const Rendezvous& rendezvous) {
    unsigned present = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        present |= warp[lane].waits_for == rendezvous ? 1u << lane : 0;
    }
    return present;
}

std::string describe(const Thread& thread) {
    const char* waits = thread.waits_for.is_of_warp() ? " waits for its warp" : " waits for its block";
    return "thread " + std::to_string(thread.index) + (thread.done ? " has ended" : waits);
}

}  // namespace

bool is_on_a_stack(uintptr_t address) {
    return address - reinterpret_cast<uintptr_t>(stacks) < sizeof(stacks);
}

Block::Block(int index, int num_threads, bool backward, const std::function<void()>& kernel)
    : threads_(num_threads),
      warps_((num_threads + kWarpSize - 1) / kWarpSize),
      backward_(backward),
      kernel_(kernel) {
    now_.block = index;
    for (int thread = 0; thread < num_threads; ++thread) {
        threads_[thread].index = thread;
        prepare(threads_[thread], stacks[thread]);
    }
}

void Block::prepare(Thread& thread, char* stack) {
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stack;
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&thread.context, reinterpret_cast<void (*)()>(&Block::enter), 2,
                static_cast<unsigned>(uint64_t{self} >> 32), static_cast<unsigned>(self));
}

void Block::enter(unsigned high, unsigned low) {
    auto* block = reinterpret_cast<Block*>(static_cast<uintptr_t>(uint64_t{high} << 32 | low));
    block->kernel_();
    block->current_->done = true;
    _longjmp(block->scheduler_, 1);
}

// Runs a thread until it waits or ends.
[[gnu::noinline]] void Block::resume(Thread& thread) {
    current_ = &thread;
    now_.warp = thread.index / kWarpSize;
    now_.lane = thread.index % kWarpSize;
    now_.warp_barriers = warps_[now_.warp].barriers;
    if (_setjmp(scheduler_) != 0) {
        return;
    }
    if (thread.started) {
        _longjmp(thread.position, 1);
    }
    thread.started = true;
    setcontext(&thread.context);
}

void Block::meet(Rendezvous rendezvous, uint64_t value) {
    Thread& thread = *current_;
    thread.waits_for = rendezvous;
    thread.value = value;
    if (_setjmp(thread.position) == 0) {
        _longjmp(scheduler_, 1);
    }
}

void Block::fail(const std::string& error) {
    error_ = error;
    _longjmp(scheduler_, 1);
}

std::string Block::run() {
    while (run_ready()) {
        const bool opened = open_complete();
        const bool done =
            std::all_of(threads_.begin(), threads_.end(), [](const Thread& thread) { return thread.done; });
        if (!opened && !done) {
            return describe_deadlock();
        }
    }
    return error_;
}

bool Block::run_ready() {
    bool ran = false;
    for (size_t turn = 0; turn < threads_.size(); ++turn) {
        Thread& thread = threads_[backward_ ? threads_.size() - 1 - turn : turn];
        if (!thread.done && thread.waits_for.operation == Operation::none) {
            resume(thread);
            ran = true;
        }
        if (!error_.empty()) {
            return false;
        }
    }
    return ran;
}

bool Block::open_complete() {
    bool opened = open_block();
    for (size_t first = 0; first < threads_.size(); first += kWarpSize) {
        opened |= open_warp(static_cast<int>(first));
    }
    return opened;
}

// Opens the collectives of one warp at which all lanes of the mask are present.
bool Block::open_warp(int first) {
    const int lanes = std::min<int>(kWarpSize, static_cast<int>(threads_.size()) - first);
    Thread* threads = threads_.data() + first;
    Warp& warp = warps_[first / kWarpSize];
    unsigned opened = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        if (threads[lane].waits_for.is_of_warp() && (opened >> lane & 1) == 0) {
            const unsigned present = lanes_at(threads, lanes, threads[lane].waits_for);
            opened |= present == threads[lane].waits_for.mask ? present : 0;
        }
    }
    for (int lane = 0; lane < lanes; ++lane) {
        if (opened >> lane & 1) {
            warp.barriers += lane == 0 && threads[lane].waits_for.operation == Operation::warp_barrier;
            warp.values[lane] = threads[lane].value;
            threads[lane].waits_for = {};
        }
    }
    return opened != 0;
}

bool Block::open_block() {
    uint64_t total = 0;
    for (const Thread& thread : threads_) {
        if (thread.done || !thread.waits_for.is_of_block() || !(thread.waits_for == threads_[0].waits_for)) {
            return false;
        }
        total += thread.value;
    }
    for (Thread& thread : threads_) {
        thread.total = total;
        thread.waits_for = {};
    }
    ++now_.barriers;
    return true;
}

std::string Block::describe_deadlock() const {
    const auto waits =
        std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return !t.done; });
    const auto differs = std::find_if(threads_.begin(), threads_.end(), [&](const Thread& t) {
        return t.done || !(t.waits_for == waits->waits_for);
    });
    return "divergence: " + describe(*waits) + " in vain" +
           (differs == threads_.end() ? "" : "; " + describe(*differs)) + ".";
}

}  // namespace emulator
