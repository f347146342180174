#pragma once

#include <cmath>
#include <cstdint>

namespace mnmt_moe {

inline constexpr int64_t kCapacityMultiple = 4;

// ceil(tokens * factor / experts) to a multiple of 4. A share that rounding has pushed just above a multiple
// (40 * 1.1 / 11 = 4.000000000000001) counts as that multiple.
inline int64_t expert_capacity(int64_t num_tokens, int64_t num_experts, double capacity_factor) {
    constexpr double rounding = 1e-12;
    const double share = static_cast<double>(num_tokens) * capacity_factor / static_cast<double>(num_experts);
    const double multiples = std::ceil(share / kCapacityMultiple * (1 - rounding));
    return static_cast<int64_t>(multiples) * kCapacityMultiple;
}

}  // namespace mnmt_moe
