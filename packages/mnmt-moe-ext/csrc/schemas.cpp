// The operators of the `mnmt_moe_ext` namespace. Their kernels are registered beside them: on the CPU in
// gate.cpp, layout.cpp, route.cpp and rows.cpp, for GPUs in cuda/.
//
// k stands for top_k, (n, k) for (groups, tokens, k) in one run of n = groups * tokens, d for d_model.
#include <torch/csrc/stable/library.h>

#define GATE_ARGUMENTS                                                                                   \
    "Tensor logits, Tensor padding_mask, Tensor? bias, Tensor? choices, Tensor? seed_and_step, Tensor? " \
    "token_ids, int top_k, SymInt capacity, int layer, float threshold, int renormalise"
#define GATE_RESULTS                                                                                         \
    "Tensor weights, Tensor gate_means, Tensor log_sums, Tensor experts, Tensor slots, Tensor load, Tensor " \
    "used_choices, Tensor real_tokens"

STABLE_TORCH_LIBRARY(mnmt_moe_ext, library) {
    // logits (groups, tokens, experts) float32 or float64; padding_mask (groups, tokens) bool; bias (experts)
    // float32 or none; choices (groups, tokens, k) int32 or none; seed_and_step (2) int64 and token_ids
    // (groups, tokens) int64, with which the second of two choices is kept at random, or none. renormalise: 0
    // before, 1 after, 2 never. weights, experts, slots, used_choices (groups, tokens, k); load (groups,
    // experts, k); gate_means (groups, experts): the mean gate of the real tokens, which are not padding;
    // real_tokens (groups): how many there are; log_sums (groups, tokens): the logarithm of the sum of
    // exp(logits), 0 for padding.
    library.def("top_k_gate(" GATE_ARGUMENTS ") -> (" GATE_RESULTS ")");
    // The same with the rows of a layout, (groups, tokens, k): of bins of bin_size rows with their `filled`
    // (experts * groups), or where bin_size is 0 of a ragged layout with its ends (experts).
    library.def("route(" GATE_ARGUMENTS ", SymInt bin_size) -> (" GATE_RESULTS
                ", Tensor rows, Tensor filled_or_ends)");
    // A gradient that is none is 0.
    library.def(
        "top_k_gate_backward(Tensor? grad_weights, Tensor? grad_gate_means, Tensor? grad_log_sums, Tensor "
        "logits, Tensor choices, Tensor slots, Tensor log_sums, Tensor real_tokens, int renormalise) -> "
        "Tensor");
    // experts, slots (groups, tokens, k), load (groups, experts, k) -> rows (groups, tokens, k) and
    // filled (experts * groups), or ends (experts).
    library.def(
        "capacity_layout(Tensor experts, Tensor slots, Tensor load, SymInt capacity, SymInt bin_size) -> "
        "(Tensor "
        "rows, Tensor filled)");
    library.def(
        "ragged_layout(Tensor experts, Tensor slots, Tensor load, SymInt capacity) -> (Tensor rows, Tensor "
        "ends)");
    // Each bin is bin_size consecutive rows of the buffers, the first `filled` of which hold a token.
    // tokens (n, d), rows (n, k), filled (bins) -> buffers (bins * bin_size, d).
    library.def("dispatch(Tensor tokens, Tensor rows, Tensor filled, SymInt bin_size) -> Tensor");
    // buffers (bins * bin_size, d), weights (n, k), or none for 1, rows (n, k) -> (n, d).
    library.def(
        "combine(Tensor buffers, Tensor? weights, Tensor rows, Tensor filled, SymInt bin_size) -> Tensor");
    library.def(
        "combine_backward(Tensor grad, Tensor buffers, Tensor weights, Tensor rows, Tensor filled, SymInt "
        "bin_size) -> (Tensor grad_buffers, Tensor grad_weights)");
}
