// The operators of the `mnmt_moe_ext` namespace. Their kernels are registered beside them, for the CPU in
// cpu/ and for GPUs in cuda/.
//
// k stands for top_k, (n, k) for (groups, tokens, k) in one run of n = groups * tokens, d for d_model.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(mnmt_moe_ext, library) {
    // logits (groups, tokens, experts) float32 or float64; padding_mask (groups, tokens) bool; bias (experts)
    // float32 or none; choices (groups, tokens, k) int32 or none; seed_and_step (2) int64 and token_ids
    // (groups, tokens) int64, with which the second of two choices is kept at random, or none. bin_size: rows
    // of a bin, or 0 for a ragged layout. renormalise: 0 before, 1 after, 2 never.
    //
    // weights, experts, slots, rows, used_choices (groups, tokens, k); load (groups, experts, k); gate_means
    // (groups, experts): the mean gate of the real tokens, which are not padding; real_tokens (groups): how
    // many there are; log_sums (groups, tokens): the logarithm of the sum of exp(logits), 0 for padding;
    // filled_or_ends: `filled` (experts * groups), or of a ragged layout `ends` (experts).
    library.def(
        "route(Tensor logits, Tensor padding_mask, Tensor? bias, Tensor? choices, Tensor? seed_and_step, "
        "Tensor? token_ids, int top_k, SymInt capacity, SymInt bin_size, int layer, float threshold, int "
        "renormalise) -> (Tensor weights, Tensor gate_means, Tensor log_sums, Tensor experts, Tensor slots, "
        "Tensor rows, Tensor filled_or_ends, Tensor load, Tensor used_choices, Tensor real_tokens)");
    // A gradient that is none is 0.
    library.def(
        "route_backward(Tensor? grad_weights, Tensor? grad_gate_means, Tensor? grad_log_sums, Tensor logits, "
        "Tensor choices, Tensor slots, Tensor log_sums, Tensor real_tokens, int renormalise) -> Tensor");
    // Sorts n numbers by bin, stably. bins (n) int32, -1 for none -> rows (n), the row of each in a ragged
    // layout, or -1; ends (num_bins).
    library.def("arrange(Tensor bins, int num_bins) -> (Tensor rows, Tensor ends)");
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
