// Checks of the gate's arguments. The Python functions make them too, with better messages; here they keep a
// direct call through torch.ops from reading out of bounds. The numbers inside tensors are checked here
// alone, and on the CPU alone.
#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <cstdint>
#include <optional>

namespace mnmt_moe {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Positions are int32, and a token makes two claims.
inline constexpr int64_t kMostTokens = int64_t{1} << 30;

inline bool is_per_token(const Tensor& tensor, const Tensor& logits) {
    return tensor.dim() == 2 && tensor.size(0) == logits.size(0) && tensor.size(1) == logits.size(1);
}

inline void check_logits(const Tensor& logits) {
    STD_TORCH_CHECK(logits.dim() == 3, "`logits` must be (groups, tokens, experts)");
    STD_TORCH_CHECK(logits.size(2) >= 2, "`logits` must have at least 2 experts");
    STD_TORCH_CHECK(logits.size(1) <= kMostTokens,
                    "`logits` has more tokens in a group than int32 can number");
}

inline void check_per_token(const Tensor& tensor, ScalarType dtype, const Tensor& logits, const char* name) {
    STD_TORCH_CHECK(tensor.scalar_type() == dtype && is_per_token(tensor, logits), "`", name,
                    "` has the wrong type or is not (groups, tokens)");
    STD_TORCH_CHECK(tensor.device() == logits.device(), "`", name, "` must be on the device of `logits`");
}

inline void check_pairs(const Tensor& pairs, ScalarType dtype, const Tensor& logits, const char* name) {
    STD_TORCH_CHECK(pairs.scalar_type() == dtype && pairs.dim() == 3 && pairs.size(0) == logits.size(0) &&
                        pairs.size(1) == logits.size(1) && pairs.size(2) == 2,
                    "`", name, "` has the wrong type or is not (groups, tokens, 2)");
    STD_TORCH_CHECK(pairs.device() == logits.device(), "`", name, "` must be on the device of `logits`");
}

inline void check_options(int64_t capacity, int64_t layer, int64_t policy, double threshold) {
    STD_TORCH_CHECK(capacity >= 1, "`capacity` must be at least 1");
    STD_TORCH_CHECK(layer >= 0 && layer <= INT64_C(0xFFFFFFFF), "`layer` must be in 0 to 2^32 - 1");
    STD_TORCH_CHECK(policy >= 0 && policy <= 2, "`policy` must be 0, 1 or 2");
    STD_TORCH_CHECK(threshold > 0, "`threshold` must be positive");
}

inline void check_draws(const Tensor& logits, const std::optional<Tensor>& seed_and_step,
                        const std::optional<Tensor>& token_ids, bool needed) {
    STD_TORCH_CHECK(
        seed_and_step.has_value() == token_ids.has_value() && (seed_and_step.has_value() || !needed),
        "`seed_and_step` and `token_ids` must both be given, or "
        "neither with policy 0");
    if (seed_and_step.has_value()) {
        STD_TORCH_CHECK(seed_and_step->scalar_type() == ScalarType::Long && seed_and_step->numel() == 2,
                        "`seed_and_step` must be 2 numbers, int64");
        STD_TORCH_CHECK(seed_and_step->device() == logits.device(),
                        "`seed_and_step` must be on the device of `logits`");
        check_per_token(*token_ids, ScalarType::Long, logits, "token_ids");
    }
}

// Each token's `choices` (count, 2) are two different experts, or both -1; for padding, where it is known,
// -1.
inline void check_choices(const int32_t* choices, const bool* padding, int64_t count, int64_t num_experts) {
    const auto exists = [=](int32_t expert) { return expert >= 0 && expert < num_experts; };
    for (int64_t token = 0; token < count; ++token) {
        const int32_t first = choices[2 * token], second = choices[2 * token + 1];
        const bool none = first == -1 && second == -1;
        const bool both = exists(first) && exists(second) && first != second;
        STD_TORCH_CHECK(padding == nullptr ? none || both
                        : padding[token]   ? none
                                           : both,
                        "`choices` must be two different experts for each token, and -1 for "
                        "padding, but are ",
                        first, " and ", second, " of ", num_experts, " for token ", token,
                        padding != nullptr && padding[token] ? ", which is padding" : "");
    }
}

}  // namespace mnmt_moe
