// Last kernel of the gate: slots, rows and weights.
#pragma once

#include "claims.cuh"
#include "layout.cuh"

namespace mnmt_moe {

struct SlotArguments {
    const int32_t* positions;  // (groups, experts, top_k, strips): of a strip's first claim
    const int32_t* experts;    // (groups, tokens, top_k)
    GateShape shape;
    int32_t capacity;
    Renormalise renormalise;
    BinRows bins;
    int32_t* slots;  // (groups, tokens, top_k)
    int32_t* rows;   // (groups, tokens, top_k)
    float* weights;  // (groups, tokens, top_k); on entry the gates
};

// The slot of this lane's choice. The whole warp calls, with the choices of one rank of the strip.
__device__ inline int32_t slot_of(const int32_t* positions, const GateShape& shape, int32_t capacity,
                                  int rank, int32_t expert) {
    const unsigned equals = __match_any_sync(kAllLanes, expert);
    if (expert == kNone) {
        return kNone;
    }
    const int32_t position =
        positions[claim_index(shape, rank, expert)] + __popc(equals & ((1u << lane_index()) - 1));
    return position < capacity ? position : kNone;
}

// The divisor of this lane's gate: the sum over the token's choices that count. The whole block calls.
__device__ inline float weight_sum(const SlotArguments& arguments, int rank, float gate, bool has_slot) {
    if (arguments.renormalise == Renormalise::never) {
        return 1;
    }
    float* counted = dynamic_shared<float>();  // (top_k, strip tokens)
    counted[rank * kWarpSize + lane_index()] =
        has_slot || arguments.renormalise == Renormalise::before ? gate : 0;
    __syncthreads();
    float sum = static_cast<float>(kRenormaliseEpsilon);
    for (int other = 0; other < arguments.shape.top_k; ++other) {
        sum += counted[other * kWarpSize + lane_index()];
    }
    return sum;
}

// A block a strip, a warp a rank, a lane a token.
__global__ void __launch_bounds__(kMaxTopK* kWarpSize) slot_kernel(SlotArguments arguments) {
    const GateShape& shape = arguments.shape;
    const Strip strip = Strip::of_block(shape);
    const int rank = warp_index();
    const int64_t index = strip.begin + lane_index();
    const int64_t choice = (strip.group * shape.tokens + index) * shape.top_k + rank;
    const bool is_token = index < strip.end;
    const int32_t expert = is_token ? arguments.experts[choice] : kNone;
    const int32_t slot = slot_of(arguments.positions, shape, arguments.capacity, rank, expert);
    const float gate = is_token ? arguments.weights[choice] : 0;
    const float sum = weight_sum(arguments, rank, gate, slot != kNone);
    if (!is_token) {
        return;
    }
    arguments.slots[choice] = slot;
    arguments.weights[choice] = (slot != kNone ? gate : 0) / sum;
    arguments.rows[choice] =
        slot == kNone ? kNone : arguments.bins.row(expert * shape.groups + strip.group, slot);
}

inline void launch_slots(const SlotArguments& arguments, cudaStream_t stream) {
    const int threads = arguments.shape.top_k * kWarpSize;
    launch(slot_kernel, arguments.shape.strips(), threads, sizeof(float) * threads, stream, arguments);
}

}  // namespace mnmt_moe
