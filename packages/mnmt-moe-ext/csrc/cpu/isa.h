// Kernels for the CPU are compiled once for each instruction set, each time into a namespace of that name,
// and chosen when they are first called. So one build serves every x86-64 processor, and others through
// `baseline`.
#pragma once

#ifndef MNMT_MOE_ISA
#define MNMT_MOE_ISA baseline
#endif

namespace mnmt_moe {

enum class Isa { baseline, avx2, avx512 };

// The best instruction set that both this build and this processor have; MNMT_MOE_ISA in the environment
// (baseline, avx2 or avx512) asks for a lesser one.
Isa instruction_set();

const char* isa_name(Isa isa);

}  // namespace mnmt_moe
