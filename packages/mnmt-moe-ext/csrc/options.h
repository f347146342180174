// Numbers and options of the gate on every device. This header includes nothing of torch or CUDA.
#pragma once

#include <cstdint>

namespace mnmt_moe {

// The number of an expert, a slot or a row that does not exist.
inline constexpr int32_t kNone = -1;
inline constexpr int kMaxTopK = 8;
// Added to the sum of a token's gates before dividing by it.
inline constexpr double kRenormaliseEpsilon = 1e-9;

// What the gates of a token's choices are divided by: their sum over all choices, over those with a slot, or
// nothing.
enum class Renormalise : int64_t { before, after, never };

}  // namespace mnmt_moe
