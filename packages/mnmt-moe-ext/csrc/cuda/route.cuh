// The top-k gate and the layout of its routing on raw device pointers: three kernels, and one more for a
// ragged layout. No float is added atomically, and the host waits for nothing.
#pragma once

#include "route_tokens.cuh"
#include "slots.cuh"

namespace mnmt_moe {

// Arrays that live from the first kernel to the last, cut out of one allocation.
struct GateWorkspace {
    int32_t* claims;
    int32_t* real;
    float* gate_sums;

    GateWorkspace(void* memory, const GateShape& shape)
        : claims(static_cast<int32_t*>(memory)),
          real(claims + claim_counts(shape)),
          gate_sums(reinterpret_cast<float*>(real + shape.strips())) {}

    static size_t bytes(const GateShape& shape) {
        return sizeof(int32_t) * (claim_counts(shape) + shape.strips() * (1 + shape.num_experts));
    }

    void clear_counts(const GateShape& shape, cudaStream_t stream) const {
        clear(claims, sizeof(int32_t) * (claim_counts(shape) + shape.strips()), stream);
    }
};

struct GateInputs {
    const float* logits;    // (groups, tokens, experts)
    const bool* padding;    // (groups, tokens)
    const float* bias;      // (experts), or null
    const int32_t* forced;  // (groups, tokens, top_k), or null
    Draws draws;
};

struct GateOptions {
    int32_t capacity;
    double threshold;
    Renormalise renormalise;
};

struct GateOutputs {
    float* weights;        // (groups, tokens, top_k)
    float* gate_means;     // (groups, experts)
    float* log_sums;       // (groups, tokens)
    int32_t* experts;      // (groups, tokens, top_k)
    int32_t* slots;        // (groups, tokens, top_k)
    int32_t* load;         // (groups, experts, top_k)
    int32_t* choices;      // (groups, tokens, top_k)
    int32_t* real_tokens;  // (groups)
};

// The layout to write beside the routing: with `filled`, or a ragged one with `ends`.
struct GateLayout {
    int32_t* rows;    // (groups, tokens, top_k)
    int32_t* filled;  // (experts, groups); of a ragged layout the rows of all bins before, in the end
    int32_t* ends;    // (experts), or null
    int32_t bin_size;
};

// `memory`: GateWorkspace::bytes(shape), aligned to 4 bytes.
inline void launch_gate(const GateInputs& inputs, const GateShape& shape, const GateOptions& options,
                        const GateOutputs& outputs, const GateLayout& layout, void* memory,
                        cudaStream_t stream) {
    const GateWorkspace workspace(memory, shape);
    const bool ragged = layout.ends != nullptr;
    workspace.clear_counts(shape, stream);
    launch_tokens({inputs.logits, inputs.padding, inputs.bias, inputs.forced, inputs.draws, options.threshold,
                   options.renormalise, shape, outputs.choices, outputs.experts, outputs.weights,
                   outputs.log_sums, workspace.claims, workspace.gate_sums, workspace.real},
                  stream);
    launch_scan({shape, options.capacity, workspace.claims, layout.filled, workspace.gate_sums,
                 workspace.real, outputs.load, outputs.gate_means, outputs.real_tokens},
                stream);
    if (ragged) {
        launch_bases(layout.filled, shape.groups, shape.num_experts, layout.ends, stream);
    }
    launch_slots({workspace.claims,
                  outputs.experts,
                  shape,
                  options.capacity,
                  options.renormalise,
                  {ragged ? layout.filled : nullptr, layout.bin_size},
                  outputs.slots,
                  layout.rows,
                  outputs.weights},
                 stream);
}

}  // namespace mnmt_moe
