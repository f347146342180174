// Kernels of `dispatch` and `combine`.
#pragma once

#include "pack.cuh"

namespace mnmt_moe {

constexpr int kCopyUnroll = 4;

template <typename T>
struct Dispatch {
    const T* tokens;      // (tokens, d)
    const int32_t* rows;  // (tokens, 2)
    Bins bins;
    int64_t num_tokens;
    int64_t d;
    T* buffers;  // (bins, bin_size, d)
};

template <typename Packed>
__device__ void copy_row(const Packed* from, const RowPair<Packed>& to, int64_t width) {
    for (int64_t start = lane_index(); start < width; start += kCopyUnroll * kWarpSize) {
        Packed packs[kCopyUnroll];
        each_pack<kCopyUnroll>(start, width,
                               [&](int index) { packs[index] = from[start + index * kWarpSize]; });
        each_pack<kCopyUnroll>(start, width, [&](int index) {
            for (Packed* row : to.rows) {
                if (row != nullptr) {
                    row[start + index * kWarpSize] = packs[index];
                }
            }
        });
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kRowsThreads) dispatch_kernel(Dispatch<T> dispatch) {
    using Packed = Pack<T, kWidth>;
    const int64_t width = dispatch.d / kWidth;
    const int64_t warp = warp_of_grid();
    auto* buffers = reinterpret_cast<Packed*>(dispatch.buffers);
    if (warp < dispatch.num_tokens) {
        copy_row(reinterpret_cast<const Packed*>(dispatch.tokens) + warp * width,
                 RowPair<Packed>(buffers, dispatch.rows + 2 * warp, dispatch.bins.rows(), width), width);
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
    const float* weights;  // (tokens, 2), or null for 1
    const int32_t* rows;   // (tokens, 2)
    int64_t num_rows;
    int64_t num_tokens;
    int64_t d;
    T* tokens;  // (tokens, d)
};

template <typename T, int kWidth>
__device__ Pack<T, kWidth> weighted_sum(const Pack<T, kWidth>* packs, const float* weights) {
    Pack<T, kWidth> sum;
#pragma unroll
    for (int index = 0; index < kWidth; ++index) {
        sum.values[index] = from_float<T>(weights[0] * to_float(packs[0].values[index]) +
                                          weights[1] * to_float(packs[1].values[index]));
    }
    return sum;
}

template <typename T, int kWidth>
__device__ void combine_rows(const RowPair<const Pack<T, kWidth>>& from, const float* weights,
                             Pack<T, kWidth>* to, int64_t width) {
    for (int64_t start = lane_index(); start < width; start += kCopyUnroll * kWarpSize) {
        Pack<T, kWidth> packs[kCopyUnroll][2] = {};
        each_pack<kCopyUnroll>(start, width, [&](int index) {
            for (int rank = 0; rank < 2; ++rank) {
                if (from.rows[rank] != nullptr) {
                    packs[index][rank] = from.rows[rank][start + index * kWarpSize];
                }
            }
        });
        each_pack<kCopyUnroll>(start, width, [&](int index) {
            to[start + index * kWarpSize] = weighted_sum<T, kWidth>(packs[index], weights);
        });
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kRowsThreads) combine_kernel(Combine<T> combine) {
    using Packed = Pack<T, kWidth>;
    const int64_t width = combine.d / kWidth;
    const int64_t token = warp_of_grid();
    if (token < combine.num_tokens) {
        const bool weighted = combine.weights != nullptr;
        const float weights[2] = {weighted ? combine.weights[2 * token] : 1,
                                  weighted ? combine.weights[2 * token + 1] : 1};
        const RowPair<const Packed> from(reinterpret_cast<const Packed*>(combine.buffers),
                                         combine.rows + 2 * token, combine.num_rows, width);
        combine_rows<T, kWidth>(from, weights, reinterpret_cast<Packed*>(combine.tokens) + token * width,
                                width);
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
