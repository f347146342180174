#pragma once

#include <cstdint>

namespace mnmt_moe {

// The upper half of a float32.
struct Bfloat16 {
    uint16_t bits;
};

}  // namespace mnmt_moe
