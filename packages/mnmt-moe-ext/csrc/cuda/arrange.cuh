// `arrange` on raw device pointers: the slots of a gate with one choice a token, whose expert is the bin.
#pragma once

#include "slots.cuh"

namespace mnmt_moe {

struct ArrangeArguments {
    const int32_t* bins;  // (length)
    GateShape shape;      // (1, length, num_bins, 1)
    int32_t* claims;      // claim_counts(shape)
    int32_t* bases;       // (num_bins)
    int32_t* ends;        // (num_bins)
    int32_t* rows;        // (length)

    // The bin of this lane's number; kNone beyond the strip.
    __device__ int32_t bin() const {
        const Strip strip = Strip::of_block(shape);
        const int64_t index = strip.begin + lane_index();
        return index < strip.end ? index_below(bins[index], shape.num_experts) : kNone;
    }
};

// A block a strip, a lane a number.
__global__ void __launch_bounds__(kWarpSize) count_kernel(ArrangeArguments arguments) {
    const int32_t bin = arguments.bin();
    if (bin != kNone) {
        atomicAdd(arguments.claims + claim_index(arguments.shape, 0, bin), 1);
    }
}

// A block a strip, a lane a number.
__global__ void __launch_bounds__(kWarpSize) arrange_kernel(ArrangeArguments arguments) {
    const Strip strip = Strip::of_block(arguments.shape);
    const int64_t index = strip.begin + lane_index();
    const int32_t bin = arguments.bin();
    const int32_t slot = slot_of(arguments.claims, arguments.shape, INT32_MAX, 0, bin);
    if (index < strip.end) {
        arguments.rows[index] = slot == kNone ? kNone : arguments.bases[bin] + slot;
    }
}

inline void launch_arrange(const ArrangeArguments& arguments, cudaStream_t stream) {
    const GateShape& shape = arguments.shape;
    clear(arguments.claims, sizeof(int32_t) * claim_counts(shape), stream);
    launch(count_kernel, shape.strips(), kWarpSize, 0, stream, arguments);
    launch_scan({shape, INT32_MAX, arguments.claims, arguments.bases}, stream);
    launch_bases(arguments.bases, 1, shape.num_experts, arguments.ends, stream);
    launch(arrange_kernel, shape.strips(), kWarpSize, 0, stream, arguments);
}

}  // namespace mnmt_moe
