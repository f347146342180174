// Operators on the CPU that another one calls.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "route_arguments.h"

namespace mnmt_moe {

Routed top_k_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                  const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                  const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                  double threshold, int64_t renormalise);

// rows and filled
std::tuple<Tensor, Tensor> capacity_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                           int64_t capacity, int64_t bin_size);

// rows and ends
std::tuple<Tensor, Tensor> ragged_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                         int64_t capacity);

}  // namespace mnmt_moe
