// The operators of the `mnmt_moe_ext` namespace and their CPU kernels, on torch's stable ABI.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/BFloat16.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "tensor_checks.h"
#include "top2_gate.h"

namespace mnmt_moe {
namespace {

using torch::headeronly::BFloat16;
using torch::stable::contiguous;
using torch::stable::new_empty;
using torch::stable::parallel_for;

using Routed = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// Below this many gates a thread costs more to wake than it saves.
constexpr int64_t kGatesPerThread = 16384;

ScalarType gate_type(const Tensor& logits) {
    return logits.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// Calls function(Logit{}, Gate{}) with the types that go with the logits' dtype.
template <typename Function>
void dispatch_logits(const Tensor& logits, Function function) {
    switch (logits.scalar_type()) {
        case ScalarType::Float:
            return function(float{}, float{});
        case ScalarType::BFloat16:
            return function(BFloat16{}, float{});
        case ScalarType::Double:
            return function(double{}, double{});
        default:
            STD_TORCH_CHECK(false, "`logits` must be float32, bfloat16 or float64");
    }
}

// Calls function(Gate{}).
template <typename Function>
void dispatch_gates(const Tensor& gates, Function function) {
    switch (gates.scalar_type()) {
        case ScalarType::Float:
            return function(float{});
        case ScalarType::Double:
            return function(double{});
        default:
            STD_TORCH_CHECK(false, "`gates` must be float32 or float64");
    }
}

int64_t tokens_per_thread(int64_t num_experts) { return std::max<int64_t>(1, kGatesPerThread / num_experts); }

std::tuple<Tensor, Tensor> top2_select(const Tensor& logits, const Tensor& padding_mask) {
    check_logits(logits, padding_mask);
    const Tensor rows = contiguous(logits);
    const Tensor padding = contiguous(padding_mask);
    const int64_t groups = rows.size(0), tokens = rows.size(1), num_experts = rows.size(2);
    Tensor gates = new_empty(rows, {groups, tokens, num_experts}, gate_type(rows));
    Tensor choices = new_empty(rows, {groups, tokens, 2}, ScalarType::Int);
    dispatch_logits(rows, [&](auto logit, auto gate) {
        using Logit = decltype(logit);
        using Gate = decltype(gate);
        const auto* logits_data = static_cast<const Logit*>(rows.const_data_ptr());
        const auto* padding_data = padding.const_data_ptr<bool>();
        auto* gates_data = gates.mutable_data_ptr<Gate>();
        auto* choices_data = choices.mutable_data_ptr<int32_t>();
        parallel_for(0, groups * tokens, tokens_per_thread(num_experts), [&](int64_t begin, int64_t end) {
            select_top2(logits_data, padding_data, num_experts, begin, end, gates_data, choices_data);
        });
    });
    return {gates, choices};
}

void check_options(const Tensor& logits, const std::optional<Tensor>& draws, const GateOptions& options) {
    STD_TORCH_CHECK(options.capacity >= 1, "`capacity` must be at least 1");
    STD_TORCH_CHECK(options.threshold > 0, "`threshold` must be positive");
    if (draws.has_value()) {
        STD_TORCH_CHECK(draws->scalar_type() == ScalarType::Float && draws->dim() == 2 &&
                            draws->size(0) == logits.size(0) && draws->size(1) == logits.size(1),
                        "`draws` must be float32 of shape (groups, tokens)");
    }
}

// E times the mean, over the groups that hold a real token, of sum_e f_e m_e: E^2 mean(f_e m_e).
template <typename Gate>
double balance_loss(const Tensor& gates, const Tensor& choices) {
    const int64_t groups = gates.size(0);
    const GroupShape shape{gates.size(1), gates.size(2)};
    const auto* gates_data = gates.const_data_ptr<Gate>();
    const auto* choices_data = choices.const_data_ptr<int32_t>();
    std::vector<double> balance(groups, 0);
    std::vector<char> occupied(groups, 0);
    parallel_for(0, groups, 1, [&](int64_t begin, int64_t end) {
        std::vector<Gate> load(shape.num_experts);
        for (int64_t group = begin; group < end; ++group) {
            occupied[group] = first_choice_load(choices_data + 2 * group * shape.tokens, shape, load.data());
            balance[group] =
                group_balance(gates_data + group * shape.tokens * shape.num_experts, load.data(), shape);
        }
    });
    double sum = 0;
    for (const double term : balance) {
        sum += term;
    }
    const auto occupied_groups = std::count(occupied.begin(), occupied.end(), 1);
    return shape.num_experts * sum / std::max<int64_t>(1, occupied_groups);
}

template <typename Gate>
void route_groups(const GroupRouting<Gate>& all, int64_t groups, GroupShape shape,
                  const GateOptions& options) {
    parallel_for(0, groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            const int64_t token = group * shape.tokens;
            route_group(
                GroupRouting<Gate>{all.gates + token * shape.num_experts, all.choices + 2 * token,
                                   all.draws == nullptr ? nullptr : all.draws + token,
                                   all.experts + 2 * token, all.slots + 2 * token, all.weights + 2 * token},
                shape, options);
        }
    });
}

Routed top2_gate(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& draws,
                 int64_t capacity, double threshold, bool renormalise_after) {
    const GateOptions options{capacity, threshold, renormalise_after};
    const auto [gates, choices] = top2_select(logits, padding_mask);
    check_options(logits, draws, options);
    const int64_t groups = logits.size(0), tokens = logits.size(1);
    Tensor experts = new_empty(choices, {groups, tokens, 2});
    Tensor slots = new_empty(choices, {groups, tokens, 2});
    Tensor weights = new_empty(gates, {groups, tokens, 2});
    Tensor auxiliary_loss = new_empty(gates, {});
    const std::optional<Tensor> uniform =
        draws.has_value() ? std::optional(contiguous(*draws)) : std::nullopt;
    dispatch_gates(gates, [&, &gates = gates, &choices = choices](auto gate) {
        using Gate = decltype(gate);
        const GroupRouting<Gate> all{gates.template const_data_ptr<Gate>(),
                                     choices.template const_data_ptr<int32_t>(),
                                     uniform ? uniform->template const_data_ptr<float>() : nullptr,
                                     experts.mutable_data_ptr<int32_t>(),
                                     slots.mutable_data_ptr<int32_t>(),
                                     weights.template mutable_data_ptr<Gate>()};
        route_groups(all, groups, GroupShape{tokens, logits.size(2)}, options);
        *auxiliary_loss.template mutable_data_ptr<Gate>() =
            static_cast<Gate>(balance_loss<Gate>(gates, choices));
    });
    return {weights, auxiliary_loss, experts, slots, gates, choices};
}

// The loads of all groups, (groups, num_experts), and how many groups hold a real token.
template <typename Gate>
std::pair<std::vector<Gate>, int64_t> all_loads(const Tensor& choices, int64_t num_experts) {
    const int64_t groups = choices.size(0), tokens = choices.size(1);
    const auto* data = choices.const_data_ptr<int32_t>();
    std::vector<Gate> loads(groups * num_experts);
    int64_t occupied_groups = 0;
    for (int64_t group = 0; group < groups; ++group) {
        occupied_groups += first_choice_load(data + 2 * group * tokens, GroupShape{tokens, num_experts},
                                             loads.data() + group * num_experts);
    }
    return {std::move(loads), occupied_groups};
}

template <typename Gate>
void backward_tokens(const Tensor& grad_weights, Gate grad_loss, const Tensor& gates, const Tensor& choices,
                     const Tensor& slots, bool renormalise_after, Tensor& grad_logits) {
    const int64_t tokens = gates.size(1), num_experts = gates.size(2);
    const auto [loads, occupied_groups] = all_loads<Gate>(choices, num_experts);
    const Gate grad_balance = grad_loss * num_experts / std::max<int64_t>(1, occupied_groups);
    const TokenGradient<Gate> all{gates.const_data_ptr<Gate>(),
                                  choices.const_data_ptr<int32_t>(),
                                  slots.const_data_ptr<int32_t>(),
                                  grad_weights.const_data_ptr<Gate>(),
                                  loads.data(),
                                  grad_balance,
                                  grad_logits.mutable_data_ptr<Gate>()};
    parallel_for(0, gates.size(0) * tokens, tokens_per_thread(num_experts), [&](int64_t begin, int64_t end) {
        for (int64_t token = begin; token < end; ++token) {
            token_backward(TokenGradient<Gate>{all.gates + token * num_experts, all.choices + 2 * token,
                                               all.slots + 2 * token, all.grad_weights + 2 * token,
                                               all.load + token / tokens * num_experts, all.grad_balance,
                                               all.grad_logits + token * num_experts},
                           num_experts, renormalise_after);
        }
    });
}

Tensor top2_gate_backward(const Tensor& grad_weights, const Tensor& grad_auxiliary_loss, const Tensor& gates,
                          const Tensor& choices, const Tensor& slots, bool renormalise_after) {
    STD_TORCH_CHECK(gates.dim() == 3, "`gates` must be (groups, tokens, experts)");
    STD_TORCH_CHECK(grad_auxiliary_loss.numel() == 1, "`grad_auxiliary_loss` must be a scalar");
    check_pairs(grad_weights, gates.scalar_type(), gates, "grad_weights");
    check_pairs(choices, ScalarType::Int, gates, "choices");
    check_pairs(slots, ScalarType::Int, gates, "slots");
    Tensor grad_logits = new_empty(gates, gates.sizes());
    dispatch_gates(gates, [&](auto gate) {
        using Gate = decltype(gate);
        backward_tokens<Gate>(contiguous(grad_weights), *grad_auxiliary_loss.const_data_ptr<Gate>(),
                              contiguous(gates), contiguous(choices), contiguous(slots), renormalise_after,
                              grad_logits);
    });
    return grad_logits;
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY(mnmt_moe_ext, library) {
    library.def("top2_select(Tensor logits, Tensor padding_mask) -> (Tensor gates, Tensor choices)");
    library.def(
        "top2_gate(Tensor logits, Tensor padding_mask, Tensor? draws, SymInt capacity, float threshold, "
        "bool renormalise_after) -> (Tensor weights, Tensor auxiliary_loss, Tensor experts, Tensor slots, "
        "Tensor gates, Tensor choices)");
    library.def(
        "top2_gate_backward(Tensor grad_weights, Tensor grad_auxiliary_loss, Tensor gates, Tensor choices, "
        "Tensor slots, bool renormalise_after) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("top2_select", TORCH_BOX(&mnmt_moe::top2_select));
    library.impl("top2_gate", TORCH_BOX(&mnmt_moe::top2_gate));
    library.impl("top2_gate_backward", TORCH_BOX(&mnmt_moe::top2_gate_backward));
}
