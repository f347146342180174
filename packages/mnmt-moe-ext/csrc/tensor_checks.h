// What every operator requires of its tensors. The Python surface has checked it already, with kinder
// messages; this keeps a direct call through torch.ops, with a wrong shape or type, from reading out of
// bounds.
#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <limits>

namespace mnmt_moe {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

inline void check_logits(const Tensor& logits, const Tensor& padding_mask) {
    STD_TORCH_CHECK(logits.dim() == 3, "`logits` must be (groups, tokens, experts)");
    STD_TORCH_CHECK(logits.size(2) >= 2, "`logits` must have at least 2 experts");
    STD_TORCH_CHECK(logits.size(1) <= std::numeric_limits<int32_t>::max(),
                    "`logits` has more tokens in a group than int32 can number");
    STD_TORCH_CHECK(padding_mask.scalar_type() == ScalarType::Bool, "`padding_mask` must be bool");
    STD_TORCH_CHECK(padding_mask.dim() == 2 && padding_mask.size(0) == logits.size(0) &&
                        padding_mask.size(1) == logits.size(1),
                    "`padding_mask` must be (groups, tokens)");
    STD_TORCH_CHECK(padding_mask.device() == logits.device(),
                    "`padding_mask` must be on the device of `logits`");
}

inline void check_pairs(const Tensor& pairs, ScalarType dtype, const Tensor& logits, const char* name) {
    STD_TORCH_CHECK(pairs.scalar_type() == dtype && pairs.dim() == 3 && pairs.size(0) == logits.size(0) &&
                        pairs.size(1) == logits.size(1) && pairs.size(2) == 2,
                    "`", name, "` has the wrong type or is not (groups, tokens, 2)");
}

}  // namespace mnmt_moe
