// Packs of up to 16 bytes, in which a warp reads and writes rows.
#pragma once

#include "warp.cuh"

namespace mnmt_moe {

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
    static constexpr int kSize = kWidth;

    T values[kWidth];
};

template <typename Packed, typename T>
const Packed* as_packs(const T* row) {
    return reinterpret_cast<const Packed*>(row);
}

template <typename Packed, typename T>
Packed* as_packs(T* row) {
    return reinterpret_cast<Packed*>(row);
}

inline bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

// Calls function(Pack{}) with the widest that rows of d and the pointers allow.
template <typename T, typename Function, typename... Pointers>
void with_packs(int64_t d, const Function& function, const Pointers*... pointers) {
    constexpr int kFullWidth = 16 / sizeof(T);
    if (d % kFullWidth == 0 && (is_aligned(pointers) && ...)) {
        function(Pack<T, kFullWidth>{});
    } else {
        function(Pack<T, 1>{});
    }
}

// Calls function(index) for the kUnroll packs from `start` that this lane has, unrolled, so that loads are in
// flight together.
template <int kUnroll, typename Function>
__device__ void each_pack(int64_t start, int64_t width, Function function) {
#pragma unroll
    for (int index = 0; index < kUnroll; ++index) {
        if (start + index * kWarpSize < width) {
            function(index);
        }
    }
}

// Copies packs of a row into registers; zeros without a row.
template <int kUnroll, typename Packed>
__device__ void load_packs(const Packed* buffers, int32_t row, int64_t start, int64_t width, Packed* packs) {
#pragma unroll
    for (int index = 0; index < kUnroll; ++index) {
        packs[index] = Packed{};
    }
    if (row != kNone) {
        each_pack<kUnroll>(start, width, [&](int index) {
            packs[index] = buffers[row * width + start + index * kWarpSize];
        });
    }
}

template <typename T, int kWidth>
__device__ void add_weighted(const Pack<T, kWidth>& pack, float weight, float* sums) {
#pragma unroll
    for (int index = 0; index < kWidth; ++index) {
        sums[index] += weight * to_float(pack.values[index]);
    }
}

template <typename T, int kWidth>
__device__ Pack<T, kWidth> rounded(const float* sums) {
    Pack<T, kWidth> pack;
#pragma unroll
    for (int index = 0; index < kWidth; ++index) {
        pack.values[index] = from_float<T>(sums[index]);
    }
    return pack;
}

template <typename T, int kWidth>
__device__ Pack<T, kWidth> scaled(const Pack<T, kWidth>& pack, float weight) {
    Pack<T, kWidth> product;
#pragma unroll
    for (int index = 0; index < kWidth; ++index) {
        product.values[index] = from_float<T>(weight * to_float(pack.values[index]));
    }
    return product;
}

template <typename T, int kWidth>
__device__ float dot(const Pack<T, kWidth>& a, const Pack<T, kWidth>& b) {
    float sum = 0;
#pragma unroll
    for (int index = 0; index < kWidth; ++index) {
        sum += to_float(a.values[index]) * to_float(b.values[index]);
    }
    return sum;
}

}  // namespace mnmt_moe
