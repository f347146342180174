// The words of CUDA C++ that kernels use, for a C++ compiler: types, and intrinsics on one thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)

using cudaStream_t = void*;

struct Index3 {
    unsigned x = 0;
};

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

template <typename To, typename From>
To bits_of(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

inline uint32_t __float_as_uint(float value) { return bits_of<uint32_t>(value); }
inline float __uint_as_float(uint32_t bits) { return bits_of<float>(bits); }

struct __nv_bfloat16 {
    uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) { return __uint_as_float(uint32_t{value.bits} << 16); }

// Round to nearest, ties to even; NaN stays NaN.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
    const uint32_t bits = __float_as_uint(value);
    if (value != value) {
        return {0x7fff};
    }
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }
