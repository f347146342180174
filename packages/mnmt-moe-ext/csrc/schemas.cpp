// The operators of the `mnmt_moe_ext` namespace. Their kernels are registered beside them: on the CPU in
// gate.cpp, layout.cpp and rows.cpp, for GPUs in cuda/.
//
// (n, 2) stands for (groups, tokens, 2) in one run of n = groups * tokens; d for d_model.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(mnmt_moe_ext, library) {
    // logits (groups, tokens, experts); padding_mask (groups, tokens) bool; choices (groups, tokens, 2) int32
    // or none; seed_and_step (2) int64 and token_ids (groups, tokens) int64, both or none. policy: 0 always,
    // 1 random, 2 sampled. weights, experts, slots, choices (groups, tokens, 2); load (groups, experts, 2);
    // log_sums (groups, tokens): the logarithm of the sum of exp(logits), 0 for padding.
    library.def(
        "top2_gate(Tensor logits, Tensor padding_mask, Tensor? choices, Tensor? seed_and_step, Tensor? "
        "token_ids, "
        "SymInt capacity, int layer, int policy, float threshold, bool renormalise_after) -> (Tensor "
        "weights, "
        "Tensor auxiliary_loss, Tensor experts, Tensor slots, Tensor load, Tensor used_choices, Tensor "
        "log_sums)");
    library.def(
        "top2_gate_backward(Tensor grad_weights, Tensor grad_auxiliary_loss, Tensor logits, Tensor choices, "
        "Tensor slots, Tensor log_sums, bool renormalise_after) -> Tensor");
    // experts, slots (groups, tokens, 2), load (groups, experts, 2) -> rows (groups, tokens, 2) and
    // filled (experts * groups), or ends (experts).
    library.def(
        "capacity_layout(Tensor experts, Tensor slots, Tensor load, SymInt capacity, SymInt bin_size) -> "
        "(Tensor "
        "rows, Tensor filled)");
    library.def(
        "ragged_layout(Tensor experts, Tensor slots, Tensor load, SymInt capacity) -> (Tensor rows, Tensor "
        "ends)");
    // Each bin is bin_size consecutive rows of the buffers, the first `filled` of which hold a token.
    // tokens (n, d), rows (n, 2), filled (bins) -> buffers (bins * bin_size, d).
    library.def("dispatch(Tensor tokens, Tensor rows, Tensor filled, SymInt bin_size) -> Tensor");
    // buffers (bins * bin_size, d), weights (n, 2), or none for 1, rows (n, 2) -> (n, d).
    library.def(
        "combine(Tensor buffers, Tensor? weights, Tensor rows, Tensor filled, SymInt bin_size) -> Tensor");
    library.def(
        "combine_backward(Tensor grad, Tensor buffers, Tensor weights, Tensor rows, Tensor filled, SymInt "
        "bin_size) -> (Tensor grad_buffers, Tensor grad_weights)");
}
