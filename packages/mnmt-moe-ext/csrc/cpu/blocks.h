// The tokens of every group in blocks, which threads take. Sums over tokens go block by block, so that no
// result depends on the number of threads.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>

namespace mnmt_moe {

inline constexpr int64_t kTokensPerBlock = 128;
// Below this many logits a thread costs more to wake than it saves.
inline constexpr int64_t kLogitsPerThread = 32768;

// No block has tokens of two groups.
struct Blocks {
    int64_t groups;
    int64_t tokens;  // of a group
    int64_t num_experts;

    int64_t per_group() const { return (tokens + kTokensPerBlock - 1) / kTokensPerBlock; }
    int64_t group_of(int64_t block) const { return block / per_group(); }
    int64_t begin(int64_t block) const {
        return group_of(block) * tokens + block % per_group() * kTokensPerBlock;
    }
    int64_t end(int64_t block) const {
        return std::min(begin(block) + kTokensPerBlock, (group_of(block) + 1) * tokens);
    }

    // Calls function(block) for every block, in parallel.
    template <typename Function>
    void in_parallel(Function function) const {
        const int64_t logits = std::max<int64_t>(1, std::min(tokens, kTokensPerBlock) * num_experts);
        const int64_t per_thread = std::max<int64_t>(1, kLogitsPerThread / logits);
        torch::stable::parallel_for(0, groups * per_group(), per_thread, [&](int64_t first, int64_t last) {
            for (int64_t block = first; block < last; ++block) {
                function(block);
            }
        });
    }
};

}  // namespace mnmt_moe
