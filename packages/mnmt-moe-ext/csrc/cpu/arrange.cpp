// `arrange` on the CPU: the slots of a gate with one choice a token, whose expert is the bin.
#include "../arrange_call.h"

#include <torch/csrc/stable/library.h>

#include <vector>

#include "slots.h"

namespace mnmt_moe {
namespace {

void check_bins(const int32_t* bins, int64_t length, int64_t num_bins) {
    for (int64_t index = 0; index < length; ++index) {
        MNMT_CHECK(bins[index] >= kNone && bins[index] < num_bins, "`bins` must be in -1 to ", num_bins - 1,
                   ", but one is ", bins[index]);
    }
}

void run(const ArrangeCall& call) {
    const auto* bins = read<int32_t>(call.bins);
    auto *rows = write<int32_t>(call.rows), *ends = write<int32_t>(call.ends);
    check_bins(bins, call.length, call.num_bins);
    std::vector<int32_t> load(call.num_bins), used(call.num_bins);
    take_slots(bins, call.length, call.num_bins, 1, INT32_MAX, rows, load.data(), used.data());
    const std::vector<int32_t> first_rows = lay_out(used, 1, call.num_bins, 0, ends);
    for (int64_t index = 0; index < call.length; ++index) {
        rows[index] += bins[index] == kNone ? 0 : first_rows[bins[index]];
    }
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("arrange", TORCH_BOX(&mnmt_moe::arrange<mnmt_moe::run>));
}
