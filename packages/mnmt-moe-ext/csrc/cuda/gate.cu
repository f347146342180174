// The top-2 gate's operators on a GPU.
#include "gate.cuh"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "../gate_checks.h"
#include "elements.h"
#include "gate_backward.cuh"
#include "stream.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

GateShape gate_shape(const Tensor& logits) {
    check_logits(logits);
    STD_TORCH_CHECK(logits.size(2) <= kMaxExperts, "`logits` on a GPU must have at most ", kMaxExperts,
                    " experts, but has ", logits.size(2));
    return {logits.size(0), logits.size(1), static_cast<int>(logits.size(2))};
}

// The tensors of some policies only, which own the memory of the pointers to them.
struct PolicyTensors {
    PolicyTensors(const Tensor& logits, const std::optional<Tensor>& choices_,
                  const std::optional<Tensor>& seed_and_step_, const std::optional<Tensor>& token_ids_,
                  Policy policy)
        : choices(contiguous_if_any(choices_)),
          seed_and_step(contiguous_if_any(seed_and_step_)),
          token_ids(contiguous_if_any(token_ids_)) {
        check_draws(logits, seed_and_step, token_ids, policy != Policy::always);
        STD_TORCH_CHECK(!choices.has_value() || policy != Policy::sampled,
                        "`choices` cannot be given with policy 2");
        if (choices.has_value()) {
            check_pairs(*choices, ScalarType::Int, logits, "choices");
        }
    }

    Draws draws(int64_t layer) const {
        return {read<int64_t>(seed_and_step), read<int64_t>(token_ids), layer};
    }

    std::optional<Tensor> choices, seed_and_step, token_ids;
};

// The operator's results, in its order.
struct Results {
    explicit Results(const Tensor& logits)
        : weights(new_empty(logits, {logits.size(0), logits.size(1), 2}, ScalarType::Float)),
          loss(new_empty(logits, {}, ScalarType::Float)),
          experts(new_empty(logits, weights.sizes(), ScalarType::Int)),
          slots(new_empty(logits, weights.sizes(), ScalarType::Int)),
          load(new_empty(logits, {logits.size(0), logits.size(2), 2}, ScalarType::Int)),
          choices(new_empty(logits, weights.sizes(), ScalarType::Int)),
          log_sums(new_empty(logits, {logits.size(0), logits.size(1)}, ScalarType::Float)) {}

    GateOutputs pointers() {
        return {write<float>(weights), write<float>(loss),   write<int32_t>(experts),
                write<int32_t>(slots), write<int32_t>(load), write<int32_t>(choices),
                write<float>(log_sums)};
    }

    Tensor weights, loss, experts, slots, load, choices, log_sums;
};

using GateResult = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

GateResult top2_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& choices,
                     const std::optional<Tensor>& seed_and_step, const std::optional<Tensor>& token_ids,
                     int64_t capacity, int64_t layer, int64_t policy, double threshold,
                     bool renormalise_after) {
    const GateShape shape = gate_shape(logits);
    check_per_token(padding_mask, ScalarType::Bool, logits, "padding_mask");
    check_options(capacity, layer, policy, threshold);
    const PolicyTensors policy_tensors(logits, choices, seed_and_step, token_ids,
                                       static_cast<Policy>(policy));
    const OnDeviceOf device(logits);
    const Tensor rows = contiguous(logits), padding = contiguous(padding_mask);
    const int64_t slots = std::min<int64_t>(capacity, std::numeric_limits<int32_t>::max());
    const GateOptions options{static_cast<int32_t>(slots), static_cast<Policy>(policy), threshold,
                              renormalise_after};
    Results results(rows);
    Tensor workspace = new_empty(rows, {static_cast<int64_t>(workspace_bytes(shape))}, ScalarType::Byte);
    with_element_type(rows, "logits", [&](auto element) {
        using Logit = decltype(element);
        launch_gate<Logit>({read<Logit>(rows), read<bool>(padding), read<int32_t>(policy_tensors.choices),
                            policy_tensors.draws(layer)},
                           shape, options, results.pointers(), workspace.mutable_data_ptr(), device.stream());
    });
    return {results.weights, results.loss,    results.experts, results.slots,
            results.load,    results.choices, results.log_sums};
}

Tensor top2_gate_backward(const Tensor& grad_weights, const Tensor& grad_auxiliary_loss, const Tensor& logits,
                          const Tensor& choices, const Tensor& slots, const Tensor& log_sums,
                          bool renormalise_after) {
    const GateShape shape = gate_shape(logits);
    check_pairs(grad_weights, ScalarType::Float, logits, "grad_weights");
    check_pairs(choices, ScalarType::Int, logits, "choices");
    check_pairs(slots, ScalarType::Int, logits, "slots");
    check_per_token(log_sums, ScalarType::Float, logits, "log_sums");
    STD_TORCH_CHECK(grad_auxiliary_loss.numel() == 1 &&
                        grad_auxiliary_loss.scalar_type() == ScalarType::Float &&
                        grad_auxiliary_loss.device() == logits.device(),
                    "`grad_auxiliary_loss` must be a float32 scalar on the device of `logits`");
    const OnDeviceOf device(logits);
    const Tensor grads = contiguous(grad_weights), rows = contiguous(logits), pairs = contiguous(choices);
    const Tensor slot_pairs = contiguous(slots), sums = contiguous(log_sums);
    Tensor counts = new_empty(rows, {static_cast<int64_t>(counts_bytes(shape))}, ScalarType::Byte);
    Tensor grad_logits = new_empty(rows, rows.sizes());
    with_element_type(rows, "logits", [&](auto element) {
        using Logit = decltype(element);
        launch_gate_backward<Logit>(
            {read<float>(grads), read<float>(grad_auxiliary_loss), read<Logit>(rows), read<int32_t>(pairs),
             read<int32_t>(slot_pairs), read<float>(sums), renormalise_after, shape, write<int32_t>(counts),
             write<Logit>(grad_logits)},
            device.stream());
    });
    return grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("top2_gate", TORCH_BOX(&mnmt_moe::top2_gate));
    library.impl("top2_gate_backward", TORCH_BOX(&mnmt_moe::top2_gate_backward));
}
