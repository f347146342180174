#include "fibers.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

namespace emulator {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kMaxThreads = 1024;

char* stack_of(int thread) {
    static std::vector<char> stacks(kStackBytes * kMaxThreads);
    return stacks.data() + kStackBytes * thread;
}

// The lanes of a warp that wait for a rendezvous.
unsigned lanes_at(const Thread* warp, int lanes, const Rendezvous& rendezvous) {
    unsigned present = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        present |= warp[lane].waits_for == rendezvous ? 1u << lane : 0;
    }
    return present;
}

std::string describe(const Thread& thread) {
    const char* places[] = {"has ended", "waits for its warp", "waits for its block"};
    const int place = thread.done ? 0 : static_cast<int>(thread.waits_for.kind);
    return "thread " + std::to_string(thread.index) + " " + places[place];
}

}  // namespace

std::vector<int> turn_order(int count, uint64_t order) {
    std::vector<int> turns(count);
    std::iota(turns.begin(), turns.end(), 0);
    if (order == 1) {
        std::reverse(turns.begin(), turns.end());
    } else if (order > 1) {
        std::shuffle(turns.begin(), turns.end(), std::mt19937_64(order));
    }
    return turns;
}

Block::Block(int num_threads, uint64_t order, const std::function<void()>& kernel)
    : threads_(num_threads),
      turns_(turn_order(num_threads, order)),
      lane_values_((num_threads + kWarpSize - 1) / kWarpSize),
      kernel_(kernel) {
    for (int index = 0; index < num_threads; ++index) {
        threads_[index].index = index;
        prepare(threads_[index], stack_of(index));
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

void Block::run() {
    while (run_ready()) {
        if (!open_complete()) {
            const bool all_done = std::all_of(threads_.begin(), threads_.end(),
                                              [](const Thread& thread) { return thread.done; });
            if (all_done) {
                return;
            }
            report_deadlock();
        }
    }
}

bool Block::run_ready() {
    bool ran = false;
    for (const int turn : turns_) {
        Thread& thread = threads_[turn];
        if (!thread.done && thread.waits_for.kind == Kind::none) {
            resume(thread);
            ran = true;
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
    Thread* warp = threads_.data() + first;
    unsigned opened = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        if (warp[lane].waits_for.kind == Kind::warp && (opened >> lane & 1) == 0) {
            const unsigned present = lanes_at(warp, lanes, warp[lane].waits_for);
            opened |= present == warp[lane].waits_for.mask ? present : 0;
        }
    }
    for (int lane = 0; lane < lanes; ++lane) {
        if (opened >> lane & 1) {
            lane_values_[first / kWarpSize][lane] = warp[lane].value;
            warp[lane].waits_for = {};
        }
    }
    return opened != 0;
}

bool Block::open_block() {
    uint64_t total = 0;
    for (const Thread& thread : threads_) {
        if (thread.done || !(thread.waits_for == threads_[0].waits_for) ||
            thread.waits_for.kind != Kind::block) {
            return false;
        }
        total += thread.value;
    }
    for (Thread& thread : threads_) {
        thread.total = total;
        thread.waits_for = {};
    }
    return true;
}

void Block::report_deadlock() const {
    const auto waits =
        std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return !t.done; });
    const auto differs = std::find_if(threads_.begin(), threads_.end(), [&](const Thread& t) {
        return t.done || !(t.waits_for == waits->waits_for);
    });
    throw std::runtime_error("divergence: " + describe(*waits) + " in vain" +
                             (differs == threads_.end() ? "" : "; " + describe(*differs)) + ".");
}

}  // namespace emulator
