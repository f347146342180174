// Arguments and results of `route` and its gradient, checked and allocated in the same way for every device.
// The Python functions check too, with better messages; here it keeps a direct call through torch.ops from
// reading out of bounds.
#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "check.h"
#include "options.h"
#include "row_checks.h"
#include "tensors.h"

namespace mnmt_moe {

using torch::headeronly::IntHeaderOnlyArrayRef;

// Positions are int32, and a token makes up to kMaxTopK claims.
inline constexpr int64_t kMostTokens = INT32_MAX / kMaxTopK;

struct RouteShape {
    int64_t groups;
    int64_t tokens;  // of a group
    int64_t num_experts;
    int64_t top_k;  // k, choices of a token

    int64_t bins() const { return groups * num_experts; }
};

inline RouteShape checked_shape(const Tensor& logits, int64_t top_k) {
    const ScalarType type = logits.scalar_type();
    MNMT_CHECK(type == ScalarType::Float || type == ScalarType::Double,
               "`logits` must be float32 or float64");
    MNMT_CHECK(logits.dim() == 3, "`logits` must be (groups, tokens, experts)");
    MNMT_CHECK(logits.size(2) >= 1, "`logits` must have at least 1 expert");
    MNMT_CHECK(logits.size(1) <= kMostTokens, "`logits` has more tokens in a group than int32 can number");
    MNMT_CHECK(top_k >= 1 && top_k <= kMaxTopK && top_k <= logits.size(2),
               "`top_k` must be in 1 to 8 and at most the number of experts");
    return {logits.size(0), logits.size(1), logits.size(2), top_k};
}

inline Renormalise checked_renormalise(int64_t number) {
    MNMT_CHECK(number >= 0 && number <= 2, "`renormalise` must be 0, 1 or 2");
    return static_cast<Renormalise>(number);
}

inline int32_t checked_capacity(int64_t capacity) {
    MNMT_CHECK(capacity >= 1, "`capacity` must be at least 1");
    return static_cast<int32_t>(std::min<int64_t>(capacity, INT32_MAX));
}

// A call of `route`: contiguous arguments, and memory for the results. schemas.cpp names the sizes.
struct RouteCall {
    RouteCall(const Tensor& logits_, const Tensor& padding_mask_, const std::optional<Tensor>& bias_,
              const std::optional<Tensor>& choices_, const std::optional<Tensor>& seed_and_step_,
              const std::optional<Tensor>& token_ids_, int64_t top_k, int64_t capacity_, int64_t bin_size_,
              int64_t layer_, double threshold_, int64_t renormalise_)
        : shape(checked_shape(logits_, top_k)),
          logits(contiguous(logits_)),
          padding_mask(contiguous(padding_mask_)),
          bias(contiguous_if_any(bias_)),
          choices(contiguous_if_any(choices_)),
          seed_and_step(contiguous_if_any(seed_and_step_)),
          token_ids(contiguous_if_any(token_ids_)),
          capacity(checked_capacity(capacity_)),
          bin_size(bin_size_),
          layer(layer_),
          threshold(threshold_),
          renormalise(checked_renormalise(renormalise_)),
          weights(numbers({shape.groups, shape.tokens, top_k})),
          gate_means(numbers({shape.groups, shape.num_experts})),
          log_sums(numbers({shape.groups, shape.tokens})),
          experts(integers({shape.groups, shape.tokens, top_k})),
          slots(integers({shape.groups, shape.tokens, top_k})),
          rows(integers({shape.groups, shape.tokens, top_k})),
          filled_or_ends(integers({is_ragged() ? shape.num_experts : shape.bins()})),
          load(integers({shape.groups, shape.num_experts, top_k})),
          used_choices(integers({shape.groups, shape.tokens, top_k})),
          real_tokens(integers({shape.groups})) {
        check();
    }

    bool is_ragged() const { return bin_size == 0; }

    RouteShape shape;
    Tensor logits, padding_mask;
    std::optional<Tensor> bias, choices, seed_and_step, token_ids;
    int32_t capacity;
    int64_t bin_size;  // 0 for a ragged layout
    int64_t layer;
    double threshold;
    Renormalise renormalise;
    Tensor weights, gate_means, log_sums, experts, slots, rows, filled_or_ends, load, used_choices,
        real_tokens;

  private:
    Tensor numbers(IntHeaderOnlyArrayRef sizes) const { return new_empty(logits, sizes); }
    Tensor integers(IntHeaderOnlyArrayRef sizes) const { return new_empty(logits, sizes, ScalarType::Int); }

    void check() const {
        const auto [groups, tokens, num_experts, top_k] = shape;
        check_tensor(padding_mask, "padding_mask", ScalarType::Bool, {groups, tokens}, logits);
        check_tensor(bias, "bias", ScalarType::Float, {num_experts}, logits);
        check_tensor(choices, "choices", ScalarType::Int, {groups, tokens, top_k}, logits);
        check_tensor(seed_and_step, "seed_and_step", ScalarType::Long, {2}, logits);
        check_tensor(token_ids, "token_ids", ScalarType::Long, {groups, tokens}, logits);
        MNMT_CHECK(seed_and_step.has_value() == token_ids.has_value(),
                   "`seed_and_step` and `token_ids` must both be given, or neither");
        MNMT_CHECK(!token_ids.has_value() || top_k == 2, "`top_k` must be 2 with `seed_and_step`");
        MNMT_CHECK(is_ragged() || bin_size >= capacity, "`bin_size` must be at least `capacity`, or 0");
        MNMT_CHECK(!is_ragged() || groups * tokens * top_k <= INT32_MAX,
                   "`logits` makes more choices than int32 can number");
        checked_num_rows(shape.bins(), std::max<int64_t>(1, bin_size));
        MNMT_CHECK(layer >= 0 && layer <= INT64_C(0xFFFFFFFF), "`layer` must be in 0 to 2^32 - 1");
        MNMT_CHECK(threshold > 0, "`threshold` must be positive");
    }
};

// The operator `route`, computed by `run`.
template <void (*run)(const RouteCall&)>
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> route(
    const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
    const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
    const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t bin_size, int64_t layer,
    double threshold, int64_t renormalise) {
    const RouteCall call(logits, padding_mask, bias, choices, seed_and_step, token_ids, top_k, capacity,
                         bin_size, layer, threshold, renormalise);
    run(call);
    return {call.weights, call.gate_means,     call.log_sums, call.experts,      call.slots,
            call.rows,    call.filled_or_ends, call.load,     call.used_choices, call.real_tokens};
}

inline int64_t checked_top_k(const Tensor& choices) {
    MNMT_CHECK(choices.dim() == 3, "`choices` must be (groups, tokens, top_k)");
    return choices.size(2);
}

// A call of the gradient, likewise. A gradient that is none is 0.
struct RouteBackwardCall {
    RouteBackwardCall(const std::optional<Tensor>& grad_weights_,
                      const std::optional<Tensor>& grad_gate_means_,
                      const std::optional<Tensor>& grad_log_sums_, const Tensor& logits_,
                      const Tensor& choices_, const Tensor& slots_, const Tensor& log_sums_,
                      const Tensor& real_tokens_, int64_t renormalise_)
        : shape(checked_shape(logits_, checked_top_k(choices_))),
          grad_weights(contiguous_if_any(grad_weights_)),
          grad_gate_means(contiguous_if_any(grad_gate_means_)),
          grad_log_sums(contiguous_if_any(grad_log_sums_)),
          logits(contiguous(logits_)),
          choices(contiguous(choices_)),
          slots(contiguous(slots_)),
          log_sums(contiguous(log_sums_)),
          real_tokens(contiguous(real_tokens_)),
          renormalise(checked_renormalise(renormalise_)),
          grad_logits(new_empty(logits, logits.sizes())) {
        check();
    }

    RouteShape shape;
    std::optional<Tensor> grad_weights, grad_gate_means, grad_log_sums;
    Tensor logits, choices, slots, log_sums, real_tokens;
    Renormalise renormalise;
    Tensor grad_logits;

  private:
    void check() const {
        const auto [groups, tokens, num_experts, top_k] = shape;
        const ScalarType type = logits.scalar_type();
        check_tensor(grad_weights, "grad_weights", type, {groups, tokens, top_k}, logits);
        check_tensor(grad_gate_means, "grad_gate_means", type, {groups, num_experts}, logits);
        check_tensor(grad_log_sums, "grad_log_sums", type, {groups, tokens}, logits);
        check_tensor(choices, "choices", ScalarType::Int, {groups, tokens, top_k}, logits);
        check_tensor(slots, "slots", ScalarType::Int, {groups, tokens, top_k}, logits);
        check_tensor(log_sums, "log_sums", type, {groups, tokens}, logits);
        check_tensor(real_tokens, "real_tokens", ScalarType::Int, {groups}, logits);
    }
};

// The operator `route_backward`, computed by `run`.
template <void (*run)(const RouteBackwardCall&)>
Tensor route_backward(const std::optional<Tensor>& grad_weights, const std::optional<Tensor>& grad_gate_means,
                      const std::optional<Tensor>& grad_log_sums, const Tensor& logits, const Tensor& choices,
                      const Tensor& slots, const Tensor& log_sums, const Tensor& real_tokens,
                      int64_t renormalise) {
    const RouteBackwardCall call(grad_weights, grad_gate_means, grad_log_sums, logits, choices, slots,
                                 log_sums, real_tokens, renormalise);
    run(call);
    return call.grad_logits;
}

// Whether a token's choices are different experts, or all kNone for padding.
inline bool are_choices(const int32_t* choices, int64_t top_k, int64_t num_experts, bool is_padding) {
    for (int64_t rank = 0; rank < top_k; ++rank) {
        const int32_t expert = choices[rank];
        const bool is_new_expert = expert >= 0 && expert < num_experts &&
                                   std::find(choices, choices + rank, expert) == choices + rank;
        if (is_padding ? expert != kNone : !is_new_expert) {
            return false;
        }
    }
    return true;
}

// Checks the numbers of `choices`, which only the CPU can read. Without a mask, padding is what has no first
// choice.
inline void check_choices(const Tensor& choices, const bool* padding_mask, int64_t num_experts) {
    const int64_t tokens = choices.size(0) * choices.size(1), top_k = choices.size(2);
    const auto* numbers = read<int32_t>(choices);
    for (int64_t token = 0; token < tokens; ++token) {
        const int32_t* experts = numbers + token * top_k;
        const bool is_padding = padding_mask == nullptr ? experts[0] == kNone : padding_mask[token];
        if (are_choices(experts, top_k, num_experts, is_padding)) {
            continue;
        }
        std::string list = std::to_string(experts[0]);
        for (int64_t rank = 1; rank < top_k; ++rank) {
            list += ", " + std::to_string(experts[rank]);
        }
        refuse("`choices` must be ", top_k, " different experts for each token, and -1 for padding, but are ",
               list, " of ", num_experts, " for token ", token, is_padding ? ", which is padding" : "");
    }
}

}  // namespace mnmt_moe
