// Arguments and results of `arrange`, checked and allocated in the same way for every device.
#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <tuple>

#include "check.h"
#include "tensors.h"

namespace mnmt_moe {

struct ArrangeCall {
    ArrangeCall(const Tensor& bins_, int64_t num_bins_)
        : bins(contiguous(bins_)),
          length(bins.numel()),
          num_bins(num_bins_),
          rows(new_empty(bins, {length})),
          ends(new_empty(bins, {num_bins})) {
        check_tensor(bins, "bins", ScalarType::Int, {length}, bins);
        MNMT_CHECK(length <= INT32_MAX, "`bins` has more numbers than int32 can count");
    }

    Tensor bins;
    int64_t length, num_bins;
    Tensor rows, ends;
};

// The operator `arrange`, computed by `run`.
template <void (*run)(const ArrangeCall&)>
std::tuple<Tensor, Tensor> arrange(const Tensor& bins, int64_t num_bins) {
    MNMT_CHECK(num_bins >= 1 && num_bins <= INT32_MAX, "`num_bins` must be at least 1");
    const ArrangeCall call(bins, num_bins);
    run(call);
    return {call.rows, call.ends};
}

}  // namespace mnmt_moe
