#include "isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "../check.h"

namespace mnmt_moe {
namespace {

Isa best_of_processor() {
#ifdef MNMT_MOE_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    return avx2 && avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::baseline;
#else
    return Isa::baseline;
#endif
}

Isa parse(std::string_view name) {
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (name == isa_name(isa)) {
            return isa;
        }
    }
    refuse("`MNMT_MOE_ISA` must be baseline, avx2 or avx512, but is ", name);
}

Isa select() {
    const char* requested = std::getenv("MNMT_MOE_ISA");
    return requested == nullptr ? best_of_processor() : std::min(best_of_processor(), parse(requested));
}

}  // namespace

Isa instruction_set() {
    static const Isa isa = select();
    return isa;
}

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::avx512:
            return "avx512";
        case Isa::avx2:
            return "avx2";
        default:
            return "baseline";
    }
}

}  // namespace mnmt_moe
