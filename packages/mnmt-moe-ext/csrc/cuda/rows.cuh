// Kernels of `dispatch` and `combine`.
#pragma once

#include "pack.cuh"

namespace mnmt_moe {

constexpr int kCopyUnroll = 4;
constexpr int kCombineUnroll = 2;

template <typename T>
struct Dispatch {
    const T* tokens;      // (tokens, d)
    const int32_t* rows;  // (tokens, top_k)
    int top_k;
    Bins bins;
    int64_t num_tokens;
    int64_t d;
    T* buffers;  // (bins, bin_size, d)
};

// Reads a token's row once for all its choices.
template <typename Packed>
__device__ void copy_token(const Packed* from, const TokenRows& rows, int top_k, Packed* buffers,
                           int64_t width) {
    for (int64_t begin = 0; begin < width; begin += kCopyUnroll * kWarpSize) {
        const int64_t start = begin + lane_index();
        Packed packs[kCopyUnroll];
        load_packs<kCopyUnroll>(from, 0, start, width, packs);
        for (int rank = 0; rank < top_k; ++rank) {
            const int32_t row = rows.row(rank);
            if (row != kNone) {
                each_pack<kCopyUnroll>(start, width, [&](int index) {
                    buffers[row * width + start + index * kWarpSize] = packs[index];
                });
            }
        }
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kRowsThreads) dispatch_kernel(Dispatch<T> dispatch) {
    using Packed = Pack<T, kWidth>;
    const int64_t width = dispatch.d / kWidth;
    const int64_t warp = warp_of_grid();
    auto* buffers = reinterpret_cast<Packed*>(dispatch.buffers);
    if (warp < dispatch.num_tokens) {
        const TokenRows rows(dispatch.rows, nullptr, warp, dispatch.top_k, dispatch.bins.rows());
        copy_token(reinterpret_cast<const Packed*>(dispatch.tokens) + warp * width, rows, dispatch.top_k,
                   buffers, width);
    } else {
        zero_empty_rows(buffers, dispatch.bins, (warp - dispatch.num_tokens) * kWarpSize, width);
    }
}

template <typename T>
void launch_dispatch(const Dispatch<T>& dispatch, cudaStream_t stream) {
    with_pack_width<T>(
        dispatch.d,
        [&](auto width) {
            launch(dispatch_kernel<T, decltype(width)::value>,
                   blocks_for(dispatch.num_tokens, dispatch.bins.rows()), kRowsThreads, 0, stream, dispatch);
        },
        dispatch.tokens, dispatch.buffers);
}

template <typename T>
struct Combine {
    const T* buffers;      // (num_rows, d)
    const float* weights;  // (tokens, top_k), or null for 1
    const int32_t* rows;   // (tokens, top_k)
    int top_k;
    int64_t num_rows;
    int64_t num_tokens;
    int64_t d;
    T* tokens;  // (tokens, d)
};

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
__device__ void combine_token(const Pack<T, kWidth>* buffers, const TokenRows& rows, int top_k,
                              Pack<T, kWidth>* to, int64_t width) {
    for (int64_t begin = 0; begin < width; begin += kCombineUnroll * kWarpSize) {
        const int64_t start = begin + lane_index();
        float sums[kCombineUnroll][kWidth] = {};
        for (int rank = 0; rank < top_k; ++rank) {
            Pack<T, kWidth> packs[kCombineUnroll];
            load_packs<kCombineUnroll>(buffers, rows.row(rank), start, width, packs);
            const float weight = rows.weight(rank);
#pragma unroll
            for (int index = 0; index < kCombineUnroll; ++index) {
                add_weighted(packs[index], weight, sums[index]);
            }
        }
        each_pack<kCombineUnroll>(start, width, [&](int index) {
            to[start + index * kWarpSize] = rounded<T, kWidth>(sums[index]);
        });
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kRowsThreads, 4) combine_kernel(Combine<T> combine) {
    using Packed = Pack<T, kWidth>;
    const int64_t width = combine.d / kWidth;
    const int64_t token = warp_of_grid();
    if (token < combine.num_tokens) {
        const TokenRows rows(combine.rows, combine.weights, token, combine.top_k, combine.num_rows);
        combine_token<T, kWidth>(reinterpret_cast<const Packed*>(combine.buffers), rows, combine.top_k,
                                 reinterpret_cast<Packed*>(combine.tokens) + token * width, width);
    }
}

template <typename T>
void launch_combine(const Combine<T>& combine, cudaStream_t stream) {
    with_pack_width<T>(
        combine.d,
        [&](auto width) {
            launch(combine_kernel<T, decltype(width)::value>, blocks_for(combine.num_tokens, 0), kRowsThreads,
                   0, stream, combine);
        },
        combine.buffers, combine.tokens);
}

}  // namespace mnmt_moe
