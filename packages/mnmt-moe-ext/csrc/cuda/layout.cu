// The row of the buffers that each choice takes, on a GPU.
#include "layout.cuh"

#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../row_checks.h"
#include "../tensors.h"
#include "stream.h"

namespace mnmt_moe {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

// The tensors of a routing, which own the memory of the pointers to them.
struct Routed {
    Routed(const Tensor& experts_, const Tensor& slots_, const Tensor& load_, int64_t capacity)
        : experts(contiguous(experts_)), slots(contiguous(slots_)), load(contiguous(load_)) {
        const LayoutShape shape{experts.size(0), experts.size(1), static_cast<int>(load.size(1)),
                                static_cast<int>(load.size(2))};
        tokens = {read<int32_t>(experts), read<int32_t>(slots), read<int32_t>(load), shape,
                  static_cast<int32_t>(capacity)};
    }

    int64_t bins() const { return load.size(0) * load.size(1); }

    Tensor experts, slots, load;
    RoutedTokens tokens;
};

std::tuple<Tensor, Tensor> capacity_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                           int64_t capacity, int64_t bin_size) {
    check_routing(experts, slots, load, capacity);
    MNMT_CHECK(bin_size >= capacity, "`bin_size` must be at least `capacity`");
    const OnDeviceOf device(experts);
    const Routed routed(experts, slots, load, capacity);
    checked_num_rows(routed.bins(), bin_size);
    Tensor rows = new_empty(routed.experts, routed.experts.sizes());
    Tensor filled = new_empty(routed.load, {routed.bins()});
    launch_capacity_layout(routed.tokens, static_cast<int32_t>(bin_size), write<int32_t>(rows),
                           write<int32_t>(filled), device.stream());
    return {rows, filled};
}

std::tuple<Tensor, Tensor> ragged_layout(const Tensor& experts, const Tensor& slots, const Tensor& load,
                                         int64_t capacity) {
    check_routing(experts, slots, load, capacity);
    const OnDeviceOf device(experts);
    const Routed routed(experts, slots, load, capacity);
    checked_num_rows(experts.size(0) * experts.size(2), experts.size(1));
    Tensor rows = new_empty(routed.experts, routed.experts.sizes());
    Tensor ends = new_empty(routed.load, {routed.load.size(1)});
    Tensor bases = new_empty(routed.load, {routed.bins()});
    launch_ragged_layout(routed.tokens, write<int32_t>(bases), write<int32_t>(rows), write<int32_t>(ends),
                         device.stream());
    return {rows, ends};
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("capacity_layout", TORCH_BOX(&mnmt_moe::capacity_layout));
    library.impl("ragged_layout", TORCH_BOX(&mnmt_moe::ragged_layout));
}
