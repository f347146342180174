// The gate and the layout of its routing as one operator; on the CPU it is one after the other.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <limits>

#include "operators.h"

namespace mnmt_moe {
namespace {

using RoutedWithLayout =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

RoutedWithLayout route(const Tensor& logits, const Tensor& padding_mask, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& choices, const std::optional<Tensor>& seed_and_step,
                       const std::optional<Tensor>& token_ids, int64_t top_k, int64_t capacity, int64_t layer,
                       double threshold, int64_t renormalise, int64_t bin_size) {
    const Routed routed = top_k_gate(logits, padding_mask, bias, choices, seed_and_step, token_ids, top_k,
                                     capacity, layer, threshold, renormalise);
    const Tensor &experts = std::get<3>(routed), &slots = std::get<4>(routed), &load = std::get<5>(routed);
    const int64_t most = std::min<int64_t>(capacity, std::numeric_limits<int32_t>::max());
    return std::tuple_cat(routed, bin_size == 0 ? ragged_layout(experts, slots, load, most)
                                                : capacity_layout(experts, slots, load, most, bin_size));
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) { library.impl("route", TORCH_BOX(&mnmt_moe::route)); }
