// The top-k gate and the layout of its routing on raw device pointers: three kernels, and one more for a
// ragged layout, without a float atomic and without a word to the host.
#pragma once

#include "gate_slots.cuh"

namespace mnmt_moe {

// Arrays that live from the first kernel to the last, cut out of one allocation.
struct GateWorkspace {
    StripTotals strips;
    int32_t* positions;
};

inline size_t workspace_bytes(const GateShape& shape) {
    const int64_t rows = claim_words(shape) + 1 + shape.top_k;
    return sizeof(int32_t) * shape.strips() * (rows * shape.num_experts + 1);
}

inline GateWorkspace cut_workspace(void* memory, const GateShape& shape) {
    const int64_t row = shape.strips() * shape.num_experts;
    GateWorkspace workspace;
    workspace.strips.claims = static_cast<uint32_t*>(memory);
    workspace.strips.gate_sums = reinterpret_cast<float*>(workspace.strips.claims + claim_words(shape) * row);
    workspace.positions = reinterpret_cast<int32_t*>(workspace.strips.gate_sums + row);
    workspace.strips.real = workspace.positions + shape.top_k * row;
    return workspace;
}

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
    int32_t* filled;  // (experts, groups)
    int32_t* ends;    // (experts)
    int32_t* bases;   // (experts, groups), only needed in between
    int32_t bin_size;
};

// `memory`: workspace_bytes(shape), aligned to 4 bytes.
inline void launch_gate(const GateInputs& inputs, const GateShape& shape, const GateOptions& options,
                        const GateOutputs& outputs, const GateLayout& layout, void* memory,
                        cudaStream_t stream) {
    const GateWorkspace workspace = cut_workspace(memory, shape);
    const bool ragged = layout.ends != nullptr;
    const ChoiceArguments choice{inputs.logits,   inputs.padding,    inputs.bias,         inputs.forced,
                                 inputs.draws,    options.threshold, options.renormalise, shape,
                                 outputs.choices, outputs.experts,   outputs.weights,     outputs.log_sums,
                                 workspace.strips};
    launch_choice(choice, stream);
    launch_scan({workspace.strips, shape, options.capacity, workspace.positions, outputs.load,
                 outputs.gate_means, outputs.real_tokens, layout.filled},
                stream);
    if (ragged) {
        launch_bases(outputs.load, shape, options.capacity, layout.bases, layout.ends, stream);
    }
    launch_slots({workspace.positions,
                  outputs.experts,
                  shape,
                  options.capacity,
                  options.renormalise,
                  {ragged ? layout.bases : nullptr, layout.bin_size},
                  outputs.slots,
                  layout.rows,
                  outputs.weights},
                 stream);
}

}  // namespace mnmt_moe
