// Finds races from a record of the accesses to every byte: all those in the accesses of a launch, in whatever
// order its threads take their turns.
//
// Two accesses of a launch are ordered if one thread makes both, if threads of one block make them with a
// __syncthreads between, or threads of one warp with a __syncwarp between. CUDA's other collectives of a warp
// order no memory. Accesses that are not ordered race if one writes, unless both are atomic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace emulator {

constexpr int kWarpSize = 32;

enum class Access { read, write, atomic };

// When in a launch a thread accesses memory.
struct Moment {
    int block = -1;    // -1 for never
    int barriers = 0;  // that the block has passed
    int warp = 0;
    int warp_barriers = 0;
    int lane = 0;

    int thread() const { return warp * kWarpSize + lane; }
};

class Races {
  public:
    // Records an access. Returns whether it races with one before.
    bool add(uintptr_t address, size_t bytes, Access access, const Moment& now);

    // Forgets all accesses to the bytes from `address`.
    void forget(uintptr_t address, size_t bytes);

    void clear() { bytes_.clear(); }

  private:
    // The last reads, writes and atomic operations of a byte; of those that are not ordered, what they share.
    struct Byte {
        Moment last[3];
    };

    std::unordered_map<uintptr_t, Byte> bytes_;  // by address
};

}  // namespace emulator
