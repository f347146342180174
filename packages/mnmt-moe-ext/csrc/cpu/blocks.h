// Tokens in blocks, which threads take.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gate_kernels.h"

namespace mnmt_moe {

// Below this many logits a thread costs more to wake than it saves.
inline constexpr int64_t kLogitsPerThread = 32768;
// Sums over tokens go block by block, so that they do not depend on the number of threads.
inline constexpr int64_t kTokensPerBlock = 128;

// Rows of numbers, all 0, each of them padded_row(num_experts) long and from the start of a cache line.
template <typename Number>
class PaddedRows {
  public:
    PaddedRows(int64_t rows, int64_t num_experts)
        : width_(padded_row<Number>(num_experts)), lines_(rows * width_ / kPerLine) {}

    Number* row(int64_t index) { return reinterpret_cast<Number*>(lines_.data()) + index * width_; }
    const Number* row(int64_t index) const {
        return reinterpret_cast<const Number*>(lines_.data()) + index * width_;
    }

  private:
    static constexpr int64_t kPerLine = 64 / sizeof(Number);
    struct alignas(64) Line {
        Number numbers[kPerLine];
    };

    int64_t width_;
    std::vector<Line> lines_;
};

// The tokens of every group, cut into blocks. No block has tokens of two groups.
struct Blocks {
    int64_t groups;
    int64_t tokens;
    int64_t num_experts;

    int64_t per_group() const { return (tokens + kTokensPerBlock - 1) / kTokensPerBlock; }
    int64_t count() const { return groups * per_group(); }
    int64_t group_of(int64_t block) const { return block / per_group(); }

    TokenRange range(int64_t block) const {
        const int64_t begin = block % per_group() * kTokensPerBlock;
        const int64_t end = std::min(tokens, begin + kTokensPerBlock);
        return {group_of(block) * tokens + begin, group_of(block) * tokens + end};
    }

    // Calls function(begin, end) on ranges of blocks, in parallel.
    template <typename Function>
    void in_parallel(Function function) const {
        const int64_t logits = std::min(tokens, kTokensPerBlock) * num_experts;
        torch::stable::parallel_for(
            0, count(), std::max<int64_t>(1, kLogitsPerThread / std::max<int64_t>(1, logits)), function);
    }
};

}  // namespace mnmt_moe
