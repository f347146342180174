// The top-2 gate on raw device pointers: three kernels, without a float atomic and without a word to the
// host.
#pragma once

#include "gate_slots.cuh"

namespace mnmt_moe {

// Arrays that live from the first kernel to the last, cut out of one allocation.
struct GateWorkspace {
    StripTotals strips;
    double* balance;
    int32_t* real;
};

inline size_t workspace_bytes(const GateShape& shape) {
    const size_t strips = shape.strips();
    return sizeof(double) * shape.groups * tiles(shape) +
           sizeof(int32_t) * (3 * strips * shape.num_experts + strips + shape.groups);
}

inline GateWorkspace cut_workspace(void* memory, const GateShape& shape) {
    GateWorkspace workspace;
    workspace.balance = static_cast<double*>(memory);
    workspace.real = reinterpret_cast<int32_t*>(workspace.balance + shape.groups * tiles(shape));
    workspace.strips.real = workspace.real + shape.groups;
    workspace.strips.claims = workspace.strips.real + shape.strips();
    workspace.strips.gate_sums =
        reinterpret_cast<float*>(workspace.strips.claims + 2 * shape.strips() * shape.num_experts);
    return workspace;
}

template <typename Logit>
struct GateInputs {
    const Logit* logits;    // (groups, tokens, experts)
    const bool* padding;    // (groups, tokens)
    const int32_t* forced;  // (groups, tokens, 2), or null
    Draws draws;
};

struct GateOptions {
    int32_t capacity;
    Policy policy;
    double threshold;
    bool renormalise_after;
};

struct GateOutputs {
    float* weights;    // (groups, tokens, 2)
    float* loss;       // ()
    int32_t* experts;  // (groups, tokens, 2)
    int32_t* slots;    // (groups, tokens, 2)
    int32_t* load;     // (groups, experts, 2)
    int32_t* choices;  // (groups, tokens, 2)
    float* log_sums;   // (groups, tokens)
};

// `memory`: workspace_bytes(shape), aligned to 8 bytes.
template <typename Logit>
void launch_gate(const GateInputs<Logit>& inputs, const GateShape& shape, const GateOptions& options,
                 const GateOutputs& outputs, void* memory, cudaStream_t stream) {
    const GateWorkspace workspace = cut_workspace(memory, shape);
    const GateTotals totals{outputs.load, workspace.balance, workspace.real, outputs.loss};
    const ChoiceArguments<Logit> choice{inputs.logits,
                                        inputs.padding,
                                        inputs.forced,
                                        inputs.draws,
                                        options.policy,
                                        options.threshold,
                                        options.renormalise_after,
                                        shape,
                                        outputs.choices,
                                        outputs.experts,
                                        outputs.weights,
                                        outputs.log_sums,
                                        workspace.strips};
    launch_choice(choice, stream);
    launch_scan({workspace.strips, totals, shape}, stream);
    launch_slots({workspace.strips.claims, totals, outputs.experts, shape, options.capacity,
                  options.renormalise_after, outputs.slots, outputs.weights},
                 stream);
}

}  // namespace mnmt_moe
