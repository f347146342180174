// A token's logits in scratch memory, padded to whole vectors by experts of logit -infinity, so that loops
// over experts have no remainder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "clones.h"

namespace mnmt_moe {

// The length of a row: a multiple of the longest vector of any processor.
inline int32_t padded(int64_t num_experts) { return (static_cast<int32_t>(num_experts) + 15) & ~15; }

template <typename T>
MNMT_MOE_INLINE void load_row(const T* from, int64_t num_experts, T* row) {
    std::copy_n(from, num_experts, row);
    std::fill(row + num_experts, row + padded(num_experts), -std::numeric_limits<T>::infinity());
}

}  // namespace mnmt_moe
