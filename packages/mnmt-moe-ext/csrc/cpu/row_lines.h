// Rows a cache line of 64 bytes at a time: loaded, computed with in float32 or float64, and written through
// the caches or past them. For row_kernels.cpp only.
#pragma once

#include "lanes.h"
#include "row_kernels.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace mnmt_moe::MNMT_MOE_ISA {
namespace {

// The float32 values of a line of bfloat16, those in the lower and in the upper halves of its 32-bit words:
// so none has to move to another lane.
struct FloatPair {
    Values<float> lower;
    Values<float> upper;
};

MNMT_MOE_INLINE FloatPair operator+(const FloatPair& a, const FloatPair& b) {
    return {a.lower + b.lower, a.upper + b.upper};
}
MNMT_MOE_INLINE FloatPair operator*(const FloatPair& a, const FloatPair& b) {
    return {a.lower * b.lower, a.upper * b.upper};
}
MNMT_MOE_INLINE FloatPair operator*(float scale, const FloatPair& a) {
    return {scale * a.lower, scale * a.upper};
}

// The upper halves are the nearest bfloat16, ties to even; NaN stays NaN.
MNMT_MOE_INLINE Bits<float> rounded(const Values<float>& values) {
    const auto bits = reinterpret_cast<Bits<float>>(values);
    return values == values ? bits + 0x7FFF + ((bits >> 16) & 1) : bits | 0x400000;
}

// How a line of elements lies in memory (Packed) and what is computed with (Wide).
template <typename Element>
struct Line {
    using Packed = Values<Element>;
    using Wide = Values<Element>;
    MNMT_MOE_INLINE static Wide widen(const Packed& packed) { return packed; }
    MNMT_MOE_INLINE static Packed narrow(const Wide& wide) { return wide; }
};

template <>
struct Line<Bfloat16> {
    using Packed = Bits<float>;
    using Wide = FloatPair;
    MNMT_MOE_INLINE static Wide widen(const Packed& packed) {
        return {reinterpret_cast<Values<float>>(packed << 16),
                reinterpret_cast<Values<float>>(packed & 0xFFFF0000)};
    }
    MNMT_MOE_INLINE static Packed narrow(const Wide& wide) {
        return (rounded(wide.lower) >> 16) | (rounded(wide.upper) & 0xFFFF0000);
    }
};

template <typename Element>
using Packed = typename Line<Element>::Packed;
template <typename Element>
using Wide = typename Line<Element>::Wide;
template <typename Element>
constexpr int64_t kLineSize = sizeof(Packed<Element>) / sizeof(Element);

MNMT_MOE_INLINE float sum_of_line(const Values<float>& line) { return sum_of_lanes<float>(line); }
MNMT_MOE_INLINE double sum_of_line(const Values<double>& line) { return sum_of_lanes<double>(line); }
MNMT_MOE_INLINE float sum_of_line(const FloatPair& line) { return sum_of_line(line.lower + line.upper); }

// The first `size` elements of a line, and 0 after them.
template <typename Element>
MNMT_MOE_INLINE Packed<Element> load_line(const Element* from, int64_t size) {
    Packed<Element> packed = {};
    std::memcpy(&packed, from, size * sizeof(Element));
    return packed;
}

template <typename Element>
MNMT_MOE_INLINE Wide<Element> load_wide(const Element* from, int64_t size) {
    return Line<Element>::widen(load_line(from, size));
}

// Past the caches, where the processor can.
template <typename Packed>
MNMT_MOE_INLINE void stream_line(void* to, const Packed& packed) {
    static_assert(sizeof(packed) == 64);
#if defined(__AVX512F__)
    _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(&packed));
#elif defined(__SSE2__)
    const auto* parts = reinterpret_cast<const __m128i*>(&packed);
    for (int part = 0; part < 4; ++part) {
        _mm_stream_si128(static_cast<__m128i*>(to) + part, _mm_loadu_si128(parts + part));
    }
#else
    std::memcpy(to, &packed, sizeof(packed));
#endif
}

// Streamed lines are in memory for every thread only after a fence.
template <bool streamed>
MNMT_MOE_INLINE void finish_streaming() {
#if defined(__SSE2__)
    if constexpr (streamed) {
        _mm_sfence();
    }
#endif
}

// Writes function(index, size), a packed line, for the elements [index, index + size) of a row.
template <bool streamed, typename Element, typename Function>
MNMT_MOE_INLINE void write_row(Element* to, int64_t width, const Function& function) {
    constexpr int64_t size = kLineSize<Element>;
    int64_t index = 0;
    for (; index + size <= width; index += size) {
        const Packed<Element> packed = function(index, size);
        if constexpr (streamed) {
            stream_line(to + index, packed);
        } else {
            std::memcpy(to + index, &packed, sizeof(packed));
        }
    }
    if (index < width) {
        const Packed<Element> packed = function(index, width - index);
        std::memcpy(to + index, &packed, (width - index) * sizeof(Element));
    }
}

}  // namespace
}  // namespace mnmt_moe::MNMT_MOE_ISA
