#include "fibers.h"

#include <algorithm>

namespace emulator {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kMaxThreads = 1024;

alignas(64) char stacks[kMaxThreads][kStackBytes];

bool is_of_block(Operation operation) { return operation == Operation::barrier; }

}  // namespace

bool is_on_a_stack(uintptr_t address) {
    return address - reinterpret_cast<uintptr_t>(stacks) < sizeof(stacks);
}

Block::Block(int index, int num_threads, bool backward, const std::function<void()>& kernel)
    : threads_(num_threads),
      values_(num_threads),
      warp_barriers_(num_threads / kWarpSize),
      backward_(backward),
      kernel_(kernel) {
    now_.block = index;
    for (size_t thread = 0; thread < threads_.size(); ++thread) {
        ucontext_t& context = threads_[thread].context;
        getcontext(&context);
        context.uc_stack.ss_sp = stacks[thread];
        context.uc_stack.ss_size = kStackBytes;
        context.uc_link = nullptr;
        makecontext(&context, &Block::enter, 0);
    }
}

void Block::enter() {
    running->kernel_();
    running->threads_[running->now_.thread()].done = true;
    _longjmp(running->scheduler_, 1);
}

// Runs a thread until it waits or ends.
[[gnu::noinline]] void Block::resume(size_t index) {
    Thread& thread = threads_[index];
    now_.warp = static_cast<int>(index) / kWarpSize;
    now_.lane = static_cast<int>(index) % kWarpSize;
    now_.warp_barriers = warp_barriers_[now_.warp];
    if (_setjmp(scheduler_) != 0) {
        return;
    }
    if (thread.started) {
        _longjmp(thread.position, 1);
    }
    thread.started = true;
    setcontext(&thread.context);
}

const uint64_t* Block::meet(Operation operation, uint64_t value) {
    Thread& thread = threads_[now_.thread()];
    thread.waits_for = operation;
    thread.value = value;
    if (_setjmp(thread.position) == 0) {
        _longjmp(scheduler_, 1);
    }
    return values_.data() + (is_of_block(operation) ? 0 : now_.warp * kWarpSize);
}

void Block::fail(const std::string& error) {
    error_ = error;
    _longjmp(scheduler_, 1);
}

std::string Block::run() {
    running = this;
    while (run_ready()) {
        const bool done =
            std::all_of(threads_.begin(), threads_.end(), [](const Thread& thread) { return thread.done; });
        if (!done && !open_complete()) {
            error_ = describe_deadlock();
            break;
        }
    }
    running = nullptr;
    return error_;
}

bool Block::run_ready() {
    bool ran = false;
    for (size_t turn = 0; turn < threads_.size() && error_.empty(); ++turn) {
        const size_t index = backward_ ? threads_.size() - 1 - turn : turn;
        if (!threads_[index].done && threads_[index].waits_for == Operation::none) {
            resume(index);
            ran = true;
        }
    }
    return ran && error_.empty();
}

bool Block::open_complete() {
    bool opened = open(0, threads_.size(), true);
    for (size_t first = 0; first < threads_.size(); first += kWarpSize) {
        opened |= open(first, kWarpSize, false);
    }
    return opened;
}

// Releases the threads of a warp or the block if all wait for the same.
bool Block::open(size_t first, size_t count, bool of_block) {
    const Operation operation = threads_[first].waits_for;
    if (operation == Operation::none || is_of_block(operation) != of_block) {
        return false;
    }
    for (size_t index = first; index < first + count; ++index) {
        if (threads_[index].waits_for != operation) {
            return false;
        }
    }
    for (size_t index = first; index < first + count; ++index) {
        values_[index] = threads_[index].value;
        threads_[index].waits_for = Operation::none;
    }
    now_.barriers += of_block;
    warp_barriers_[first / kWarpSize] += operation == Operation::warp_barrier;
    return true;
}

std::string Block::describe_deadlock() const {
    const auto describe = [&](auto thread) {
        const char* waits = is_of_block(thread->waits_for) ? " waits for its block" : " waits for its warp";
        return "thread " + std::to_string(thread - threads_.begin()) + (thread->done ? " has ended" : waits);
    };
    const auto waits =
        std::find_if(threads_.begin(), threads_.end(), [](const Thread& thread) { return !thread.done; });
    const auto differs = std::find_if(threads_.begin(), threads_.end(), [&](const Thread& thread) {
        return thread.waits_for != waits->waits_for;
    });
    return "divergence: " + describe(waits) + " in vain; " + describe(differs) + ".";
}

}  // namespace emulator
