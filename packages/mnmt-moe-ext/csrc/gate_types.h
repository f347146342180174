// The types of a gate's arrays, and the kernels for them.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include "cpu/gate_kernels.h"
#include "gate_checks.h"

namespace mnmt_moe {

inline ScalarType gate_type(const Tensor& logits) {
    return logits.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// Calls function(Logit{}) with the type of the logits.
template <typename Function>
void dispatch_logits(const Tensor& logits, Function function) {
    switch (logits.scalar_type()) {
        case ScalarType::Float:
            return function(float{});
        case ScalarType::BFloat16:
            return function(Bfloat16{});
        case ScalarType::Double:
            return function(double{});
        default:
            refuse("`logits` must be float32, bfloat16 or float64");
    }
}

template <typename Logit>
GateKernels<Logit> chosen_kernels(int top_k) {
#ifdef MNMT_MOE_X86
    switch (instruction_set()) {
        case Isa::avx512:
            return avx512::gate_kernels<Logit>(top_k);
        case Isa::avx2:
            return avx2::gate_kernels<Logit>(top_k);
        default:
            break;
    }
#endif
    return baseline::gate_kernels<Logit>(top_k);
}

}  // namespace mnmt_moe
