#include "races.h"

namespace emulator {
namespace {

constexpr size_t kPageBytes = 1024;
constexpr int kSeveral = -2;  // blocks, warps or lanes

bool is_ordered(const Moment& before, const Moment& now) {
    if (before.block != now.block) {
        return before.block == -1;
    }
    if (before.barriers != now.barriers) {
        return true;
    }
    if (before.warp != now.warp) {
        return false;
    }
    return before.warp_barriers != now.warp_barriers || before.lane == now.lane;
}

// What is not ordered with a moment that is not ordered with `before` or with `now`.
Moment joined(const Moment& before, const Moment& now) {
    Moment both = now;
    if (is_ordered(before, now)) {
        return both;
    }
    if (before.block != now.block) {
        both.block = kSeveral;
    } else if (before.warp != now.warp) {
        both.warp = kSeveral;
    } else {
        both.lane = kSeveral;
    }
    return both;
}

bool may_race(Access first, Access second) {
    return first == Access::write || second == Access::write || first != second;
}

}  // namespace

bool Races::add(uintptr_t address, size_t bytes, Access access, const Moment& now) {
    for (uintptr_t end = address + bytes; address != end; ++address) {
        Byte& byte = at(address);
        for (const Access other : {Access::read, Access::write, Access::atomic}) {
            const Moment& before = byte.last[static_cast<int>(other)];
            if (may_race(access, other) && !is_ordered(before, now)) {
                return true;
            }
        }
        Moment& last = byte.last[static_cast<int>(access)];
        last = joined(last, now);
    }
    return false;
}

void Races::forget(uintptr_t address, size_t bytes) {
    for (uintptr_t end = address + bytes; address != end; ++address) {
        at(address) = {};
    }
}

void Races::clear() {
    pages_.clear();
    page_ = nullptr;
}

Races::Byte& Races::at(uintptr_t address) {
    const uintptr_t number = address / kPageBytes;
    if (page_ == nullptr || number != page_number_) {
        auto& page = pages_[number];
        page.resize(kPageBytes);
        page_ = page.data();
        page_number_ = number;
    }
    return page_[address % kPageBytes];
}

}  // namespace emulator
