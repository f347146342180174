#include "races.h"

namespace emulator {
namespace {

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

// Unordered with whatever is unordered with `before` or with `now`.
Moment joined(const Moment& before, Moment now) {
    if (is_ordered(before, now)) {
        return now;
    }
    if (before.block != now.block) {
        now.block = kSeveral;
    } else if (before.warp != now.warp) {
        now.warp = kSeveral;
    } else {
        now.lane = kSeveral;
    }
    return now;
}

bool may_race(Access first, Access second) {
    return first == Access::write || second == Access::write || first != second;
}

}  // namespace

bool Races::add(uintptr_t address, size_t bytes, Access access, const Moment& now) {
    for (uintptr_t end = address + bytes; address != end; ++address) {
        Byte& byte = bytes_[address];
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
        bytes_.erase(address);
    }
}

}  // namespace emulator
