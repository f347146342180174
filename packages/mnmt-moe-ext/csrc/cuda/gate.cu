// The top-k gate's operators on a GPU.
#include "gate.cuh"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "../gate_checks.h"
#include "../row_checks.h"
#include "elements.h"
#include "gate_backward.cuh"
#include "stream.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

GateShape gate_shape(const Tensor& logits, int64_t top_k) {
    check_logits(logits);
    check_top_k(logits, top_k);
    MNMT_CHECK(logits.size(2) <= kMaxExperts, "`logits` on a GPU must have at most ", kMaxExperts,
               " experts, but has ", logits.size(2));
    return {logits.size(0), logits.size(1), static_cast<int>(logits.size(2)), static_cast<int>(top_k)};
}

// The tensors of some calls only, which own the memory of the pointers to them.
struct OptionalTensors {
    OptionalTensors(const Tensor& logits, const std::optional<Tensor>& bias_,
                    const std::optional<Tensor>& choices_, const std::optional<Tensor>& seed_and_step_,
                    const std::optional<Tensor>& token_ids_, int64_t top_k)
        : bias(contiguous_if_any(bias_)),
          choices(contiguous_if_any(choices_)),
          seed_and_step(contiguous_if_any(seed_and_step_)),
          token_ids(contiguous_if_any(token_ids_)) {
        check_draws(logits, seed_and_step, token_ids, top_k);
        if (bias.has_value()) {
            check_bias(*bias, logits);
        }
        if (choices.has_value()) {
            check_per_choice(*choices, ScalarType::Int, logits, top_k, "choices");
        }
    }

    Draws draws(int64_t layer) const {
        return {read<int64_t>(seed_and_step), read<int64_t>(token_ids), layer};
    }

    std::optional<Tensor> bias, choices, seed_and_step, token_ids;
};

using Routed = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using RoutedWithLayout = decltype(std::tuple_cat(Routed{}, std::tuple<Tensor, Tensor>{}));

struct Results {
    Results(const Tensor& logits, int64_t top_k)
        : weights(new_empty(logits, {logits.size(0), logits.size(1), top_k}, ScalarType::Float)),
          gate_means(new_empty(logits, {logits.size(0), logits.size(2)}, ScalarType::Float)),
          log_sums(new_empty(logits, {logits.size(0), logits.size(1)}, ScalarType::Float)),
          experts(new_empty(logits, weights.sizes(), ScalarType::Int)),
          slots(new_empty(logits, weights.sizes(), ScalarType::Int)),
          load(new_empty(logits, {logits.size(0), logits.size(2), top_k}, ScalarType::Int)),
          choices(new_empty(logits, weights.sizes(), ScalarType::Int)),
          real_tokens(new_empty(logits, {logits.size(0)}, ScalarType::Int)) {}

    GateOutputs pointers() {
        return {write<float>(weights),   write<float>(gate_means),   write<float>(log_sums),
                write<int32_t>(experts), write<int32_t>(slots),      write<int32_t>(load),
                write<int32_t>(choices), write<int32_t>(real_tokens)};
    }

    Routed tuple() const {
        return {weights, gate_means, log_sums, experts, slots, load, choices, real_tokens};
    }

    Tensor weights, gate_means, log_sums, experts, slots, load, choices, real_tokens;
};

// What the operators take, checked, and with the memory of what the kernels read.
struct GateCall {
    GateCall(const Tensor& logits_, const Tensor& padding_mask, const std::optional<Tensor>& bias,
             const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
             const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer_,
             double threshold, int64_t renormalise)
        : shape(gate_shape(logits_, top_k)),
          options{static_cast<int32_t>(std::min<int64_t>(capacity, std::numeric_limits<int32_t>::max())),
                  threshold, static_cast<Renormalise>(renormalise)},
          layer(layer_),
          optional(logits_, bias, choices, seed_and_step, token_ids, top_k),
          logits(contiguous(logits_)),
          padding(contiguous(padding_mask)),
          results(logits, top_k) {
        check_per_token(padding_mask, ScalarType::Bool, logits, "padding_mask");
        check_options(logits, top_k, capacity, layer, threshold, renormalise);
    }

    void launch(const GateLayout& layout, cudaStream_t stream) {
        Tensor workspace =
            new_empty(logits, {static_cast<int64_t>(workspace_bytes(shape))}, ScalarType::Byte);
        with_element_type(logits, "logits", [&](auto element) {
            using Logit = decltype(element);
            launch_gate<Logit>({read<Logit>(logits), read<bool>(padding), read<float>(optional.bias),
                                read<int32_t>(optional.choices), optional.draws(layer)},
                               shape, options, results.pointers(), layout, workspace.mutable_data_ptr(),
                               stream);
        });
    }

    GateShape shape;
    GateOptions options;
    int64_t layer;
    OptionalTensors optional;
    Tensor logits, padding;
    Results results;
};

Routed top_k_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                  const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                  const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                  double threshold, int64_t renormalise) {
    const OnDeviceOf device(logits);
    GateCall call(logits, padding_mask, bias, choices, seed_and_step, token_ids, top_k, capacity, layer,
                  threshold, renormalise);
    call.launch(GateLayout{}, device.stream());
    return call.results.tuple();
}

RoutedWithLayout route(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                       const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                       double threshold, int64_t renormalise, int64_t bin_size) {
    const OnDeviceOf device(logits);
    GateCall call(logits, padding_mask, bias, choices, seed_and_step, token_ids, top_k, capacity, layer,
                  threshold, renormalise);
    const bool ragged = bin_size == 0;
    const int64_t num_experts = logits.size(2), bins = logits.size(0) * num_experts;
    MNMT_CHECK(ragged || bin_size >= capacity, "`bin_size` must be at least `capacity`, or 0");
    ragged ? checked_num_rows(logits.size(0) * top_k, logits.size(1)) : checked_num_rows(bins, bin_size);
    Tensor rows = new_empty(call.results.slots, call.results.slots.sizes());
    Tensor filled_or_ends = new_empty(rows, {ragged ? num_experts : bins});
    Tensor bases = new_empty(rows, {ragged ? bins : 0});
    int32_t* second = write<int32_t>(filled_or_ends);
    call.launch({write<int32_t>(rows), ragged ? nullptr : second, ragged ? second : nullptr,
                 write<int32_t>(bases), static_cast<int32_t>(bin_size)},
                device.stream());
    return std::tuple_cat(call.results.tuple(), std::tuple(rows, filled_or_ends));
}

// Checks the gradients that there are, and owns the memory of the pointers to them.
struct Gradients {
    Gradients(const Tensor& logits, int64_t top_k, const std::optional<Tensor>& grad_weights,
              const std::optional<Tensor>& grad_gate_means, const std::optional<Tensor>& grad_log_sums)
        : weights(contiguous_if_any(grad_weights)),
          gate_means(contiguous_if_any(grad_gate_means)),
          log_sums(contiguous_if_any(grad_log_sums)) {
        if (weights.has_value()) {
            check_per_choice(*weights, ScalarType::Float, logits, top_k, "grad_weights");
        }
        if (gate_means.has_value()) {
            check_grad_gate_means(*gate_means, ScalarType::Float, logits);
        }
        if (log_sums.has_value()) {
            check_per_token(*log_sums, ScalarType::Float, logits, "grad_log_sums");
        }
    }

    std::optional<Tensor> weights, gate_means, log_sums;
};

Tensor top_k_gate_backward(const std::optional<Tensor>& grad_weights,
                           const std::optional<Tensor>& grad_gate_means,
                           const std::optional<Tensor>& grad_log_sums, const Tensor& logits,
                           const Tensor& choices, const Tensor& slots, const Tensor& log_sums,
                           const Tensor& real_tokens, int64_t renormalise) {
    const int64_t top_k = choices.dim() == 3 ? choices.size(2) : 0;
    const GateShape shape = gate_shape(logits, top_k);
    check_renormalise(renormalise);
    check_per_choice(choices, ScalarType::Int, logits, top_k, "choices");
    check_per_choice(slots, ScalarType::Int, logits, top_k, "slots");
    check_per_token(log_sums, ScalarType::Float, logits, "log_sums");
    check_per_group(real_tokens, ScalarType::Int, logits, "real_tokens");
    const OnDeviceOf device(logits);
    const Gradients grads(logits, top_k, grad_weights, grad_gate_means, grad_log_sums);
    const Tensor rows = contiguous(logits), experts = contiguous(choices), places = contiguous(slots);
    const Tensor sums = contiguous(log_sums), counts = contiguous(real_tokens);
    Tensor grad_logits = new_empty(rows, rows.sizes());
    with_element_type(rows, "logits", [&](auto element) {
        using Logit = decltype(element);
        launch_gate_backward<Logit>(
            {read<float>(grads.weights), read<float>(grads.gate_means), read<float>(grads.log_sums),
             read<Logit>(rows), read<int32_t>(experts), read<int32_t>(places), read<float>(sums),
             read<int32_t>(counts), static_cast<Renormalise>(renormalise), shape, write<Logit>(grad_logits)},
            device.stream());
    });
    return grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("top_k_gate", TORCH_BOX(&mnmt_moe::top_k_gate));
    library.impl("route", TORCH_BOX(&mnmt_moe::route));
    library.impl("top_k_gate_backward", TORCH_BOX(&mnmt_moe::top_k_gate_backward));
}
