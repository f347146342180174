// The types of a gate's arrays, and the kernels for them.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include "../check.h"
#include "gate_kernels.h"

namespace mnmt_moe {

// Calls function(T{}) with the type of the logits.
template <typename Function>
void dispatch_logits(const Tensor& logits, Function function) {
    if (logits.scalar_type() == ScalarType::Float) {
        function(float{});
    } else {
        function(double{});
    }
}

template <typename T>
GateKernels<T> chosen_kernels(int top_k) {
#ifdef MNMT_MOE_X86
    switch (instruction_set()) {
        case Isa::avx512:
            return avx512::gate_kernels<T>(top_k);
        case Isa::avx2:
            return avx2::gate_kernels<T>(top_k);
        default:
            break;
    }
#endif
    return baseline::gate_kernels<T>(top_k);
}

}  // namespace mnmt_moe
