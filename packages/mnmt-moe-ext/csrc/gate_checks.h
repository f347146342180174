// Checks of the gate's arguments. The Python functions make them too, with better messages; here they keep a
// direct call through torch.ops from reading out of bounds. The numbers inside tensors are checked here
// alone, and on the CPU alone.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "check.h"

namespace mnmt_moe {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Positions are int32, and a token makes up to eight claims.
inline constexpr int64_t kMostTokens = INT32_MAX / 8;

inline bool is_per_token(const Tensor& tensor, const Tensor& logits) {
    return tensor.dim() == 2 && tensor.size(0) == logits.size(0) && tensor.size(1) == logits.size(1);
}

inline void check_logits(const Tensor& logits) {
    MNMT_CHECK(logits.dim() == 3, "`logits` must be (groups, tokens, experts)");
    MNMT_CHECK(logits.size(2) >= 1, "`logits` must have at least 1 expert");
    MNMT_CHECK(logits.size(1) <= kMostTokens, "`logits` has more tokens in a group than int32 can number");
}

inline void check_per_token(const Tensor& tensor, ScalarType dtype, const Tensor& logits, const char* name) {
    MNMT_CHECK(tensor.scalar_type() == dtype && is_per_token(tensor, logits), "`", name,
               "` has the wrong type or is not (groups, tokens)");
    MNMT_CHECK(tensor.device() == logits.device(), "`", name, "` must be on the device of `logits`");
}

inline void check_per_group(const Tensor& tensor, ScalarType dtype, const Tensor& logits, const char* name) {
    MNMT_CHECK(tensor.scalar_type() == dtype && tensor.dim() == 1 && tensor.size(0) == logits.size(0), "`",
               name, "` has the wrong type or is not (groups)");
    MNMT_CHECK(tensor.device() == logits.device(), "`", name, "` must be on the device of `logits`");
}

inline void check_per_choice(const Tensor& tensor, ScalarType dtype, const Tensor& logits, int64_t top_k,
                             const char* name) {
    MNMT_CHECK(tensor.scalar_type() == dtype && tensor.dim() == 3 && tensor.size(0) == logits.size(0) &&
                   tensor.size(1) == logits.size(1) && tensor.size(2) == top_k,
               "`", name, "` has the wrong type or is not (groups, tokens, ", top_k, ")");
    MNMT_CHECK(tensor.device() == logits.device(), "`", name, "` must be on the device of `logits`");
}

inline void check_grad_gate_means(const Tensor& grad, ScalarType dtype, const Tensor& logits) {
    MNMT_CHECK(grad.scalar_type() == dtype && grad.dim() == 2 && grad.size(0) == logits.size(0) &&
                   grad.size(1) == logits.size(2),
               "`grad_gate_means` has the wrong type or is not (groups, experts)");
    MNMT_CHECK(grad.device() == logits.device(), "`grad_gate_means` must be on the device of `logits`");
}

inline void check_bias(const Tensor& bias, const Tensor& logits) {
    MNMT_CHECK(bias.scalar_type() == ScalarType::Float && bias.dim() == 1 && bias.size(0) == logits.size(2),
               "`bias` must be (experts), float32");
    MNMT_CHECK(bias.device() == logits.device(), "`bias` must be on the device of `logits`");
}

inline void check_top_k(const Tensor& logits, int64_t top_k) {
    MNMT_CHECK(top_k >= 1 && top_k <= 8 && top_k <= logits.size(2),
               "`top_k` must be in 1 to 8 and at most the number of experts");
}

inline void check_renormalise(int64_t renormalise) {
    MNMT_CHECK(renormalise >= 0 && renormalise <= 2, "`renormalise` must be 0, 1 or 2");
}

inline void check_options(const Tensor& logits, int64_t top_k, int64_t capacity, int64_t layer,
                          double threshold, int64_t renormalise) {
    check_top_k(logits, top_k);
    MNMT_CHECK(capacity >= 1, "`capacity` must be at least 1");
    MNMT_CHECK(layer >= 0 && layer <= INT64_C(0xFFFFFFFF), "`layer` must be in 0 to 2^32 - 1");
    MNMT_CHECK(threshold > 0, "`threshold` must be positive");
    check_renormalise(renormalise);
}

inline void check_draws(const Tensor& logits, const std::optional<Tensor>& seed_and_step,
                        const std::optional<Tensor>& token_ids, int64_t top_k) {
    MNMT_CHECK(seed_and_step.has_value() == token_ids.has_value(),
               "`seed_and_step` and `token_ids` must both be given, or neither");
    if (seed_and_step.has_value()) {
        MNMT_CHECK(top_k == 2, "`top_k` must be 2 with `seed_and_step`");
        MNMT_CHECK(seed_and_step->scalar_type() == ScalarType::Long && seed_and_step->numel() == 2,
                   "`seed_and_step` must be 2 numbers, int64");
        MNMT_CHECK(seed_and_step->device() == logits.device(),
                   "`seed_and_step` must be on the device of `logits`");
        check_per_token(*token_ids, ScalarType::Long, logits, "token_ids");
    }
}

inline bool are_experts(const int32_t* choices, int64_t top_k, int64_t num_experts) {
    return std::all_of(choices, choices + top_k,
                       [=](int32_t expert) { return expert >= 0 && expert < num_experts; });
}

inline bool are_none(const int32_t* choices, int64_t top_k) {
    return std::all_of(choices, choices + top_k, [](int32_t expert) { return expert == -1; });
}

inline bool are_different(const int32_t* choices, int64_t top_k) {
    for (int64_t rank = 1; rank < top_k; ++rank) {
        if (std::find(choices, choices + rank, choices[rank]) != choices + rank) {
            return false;
        }
    }
    return true;
}

inline std::string listed(const int32_t* numbers, int64_t count) {
    std::string list = std::to_string(numbers[0]);
    for (int64_t index = 1; index < count; ++index) {
        list += ", " + std::to_string(numbers[index]);
    }
    return list;
}

// The choices of each token must be different experts, and -1 for padding.
inline void check_choices(const Tensor& choices, const Tensor& padding, int64_t num_experts) {
    const int64_t top_k = choices.size(2);
    const auto* experts = choices.const_data_ptr<int32_t>();
    const auto* is_padding = padding.const_data_ptr<bool>();
    for (int64_t token = 0; token < padding.numel(); ++token, experts += top_k) {
        MNMT_CHECK(is_padding[token]
                       ? are_none(experts, top_k)
                       : are_experts(experts, top_k, num_experts) && are_different(experts, top_k),
                   "`choices` must be ", top_k, " different experts for each token, and -1 for padding, ",
                   "but are ", listed(experts, top_k), " of ", num_experts, " for token ", token,
                   is_padding[token] ? ", which is padding" : "");
    }
}

// The choices of each token must be experts, or -1.
inline void check_choices(const Tensor& choices, int64_t num_experts) {
    const int64_t top_k = choices.size(2), tokens = choices.size(0) * choices.size(1);
    const auto* experts = choices.const_data_ptr<int32_t>();
    for (int64_t token = 0; token < tokens; ++token, experts += top_k) {
        MNMT_CHECK(are_experts(experts, top_k, num_experts) || are_none(experts, top_k),
                   "`choices` must be experts, or -1 for padding, but are ", listed(experts, top_k), " of ",
                   num_experts, " for token ", token);
    }
}

}  // namespace mnmt_moe
