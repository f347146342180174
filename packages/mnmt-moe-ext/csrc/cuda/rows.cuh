// Kernels of `dispatch` and `combine`: a warp takes a token, and moves its rows in packs of up to 16 bytes.
#pragma once

#include "pack.cuh"

namespace mnmt_moe {

constexpr int kRowsThreads = 256;
constexpr int kRowsWarps = kRowsThreads / kWarpSize;
constexpr int kCopyUnroll = 4;
constexpr int kSumUnroll = 2;

// The buffers that tokens are dispatched to: bins of bin_size rows, the first filled[bin] of which hold a
// token.
struct Bins {
    const int32_t* filled;
    int64_t count;
    int64_t bin_size;

    __host__ __device__ int64_t rows() const { return count * bin_size; }
};

// The choices of all tokens.
struct Choices {
    const int32_t* rows;   // (tokens, top_k)
    const float* weights;  // (tokens, top_k), or null for 1
    int top_k;
    int64_t num_tokens;
    Bins bins;
};

// The choices of a token: lane r has the row of that of rank r, and its weight.
class TokenChoices {
  public:
    __device__ TokenChoices(const Choices& choices, int64_t token) {
        const int64_t choice = choices.top_k * token + lane_index();
        if (lane_index() < choices.top_k) {
            row_ = index_below(choices.rows[choice], choices.bins.rows());
            weight_ = choices.weights == nullptr ? 1 : choices.weights[choice];
        }
    }

    // The row of a rank; kNone for none. The whole warp calls.
    __device__ int32_t row(int rank) const { return __shfl_sync(kAllLanes, row_, rank); }

    // The whole warp calls.
    __device__ float weight(int rank) const { return __shfl_sync(kAllLanes, weight_, rank); }

  private:
    int32_t row_ = kNone;
    float weight_ = 0;
};

__device__ inline int64_t warp_of_grid() { return block_index() * kRowsWarps + warp_index(); }

// Zeroes those of the 32 rows from `start` that hold no token. The whole warp calls.
template <typename Packed>
__device__ void zero_empty_rows(Packed* buffers, const Bins& bins, int64_t start, int64_t width) {
    const int64_t row = start + lane_index();
    const bool empty = row < bins.rows() && row % bins.bin_size >= bins.filled[row / bins.bin_size];
    for (unsigned left = __ballot_sync(kAllLanes, empty); left != 0; left &= left - 1) {
        Packed* const zeros = buffers + (start + __ffs(left) - 1) * width;
        for (int64_t index = lane_index(); index < width; index += kWarpSize) {
            zeros[index] = Packed{};
        }
    }
}

// Reads a token's row once for all its choices. `width`: packs of a row.
template <typename Packed>
__device__ void copy_token(const Packed* from, const TokenChoices& choices, int top_k, Packed* buffers,
                           int64_t width) {
    for (int64_t begin = 0; begin < width; begin += kCopyUnroll * kWarpSize) {
        const int64_t start = begin + lane_index();
        Packed packs[kCopyUnroll];
        load_packs<kCopyUnroll>(from, 0, start, width, packs);
        for (int rank = 0; rank < top_k; ++rank) {
            const int32_t row = choices.row(rank);
            if (row != kNone) {
                each_pack<kCopyUnroll>(start, width, [&](int index) {
                    buffers[row * width + start + index * kWarpSize] = packs[index];
                });
            }
        }
    }
}

template <typename Packed>
__global__ void __launch_bounds__(kRowsThreads)
    dispatch_kernel(Choices choices, const Packed* tokens, int64_t width, Packed* buffers) {
    const int64_t warp = warp_of_grid();
    if (warp < choices.num_tokens) {
        copy_token(tokens + warp * width, TokenChoices(choices, warp), choices.top_k, buffers, width);
    } else {
        zero_empty_rows(buffers, choices.bins, (warp - choices.num_tokens) * kWarpSize, width);
    }
}

// Sums the weighted rows of a token's choices.
template <typename T, int kWidth>
__device__ void sum_rows(const Pack<T, kWidth>* buffers, const TokenChoices& choices, int top_k,
                         Pack<T, kWidth>* to, int64_t width) {
    for (int64_t begin = 0; begin < width; begin += kSumUnroll * kWarpSize) {
        const int64_t start = begin + lane_index();
        float sums[kSumUnroll][kWidth] = {};
        for (int rank = 0; rank < top_k; ++rank) {
            Pack<T, kWidth> packs[kSumUnroll];
            load_packs<kSumUnroll>(buffers, choices.row(rank), start, width, packs);
            const float weight = choices.weight(rank);
#pragma unroll
            for (int index = 0; index < kSumUnroll; ++index) {
                add_weighted(packs[index], weight, sums[index]);
            }
        }
        each_pack<kSumUnroll>(start, width, [&](int index) {
            to[start + index * kWarpSize] = rounded<T, kWidth>(sums[index]);
        });
    }
}

template <typename Packed>
__global__ void __launch_bounds__(kRowsThreads, 4)
    combine_kernel(Choices choices, const Packed* buffers, int64_t width, Packed* tokens) {
    const int64_t token = warp_of_grid();
    if (token < choices.num_tokens) {
        sum_rows(buffers, TokenChoices(choices, token), choices.top_k, tokens + token * width, width);
    }
}

// Writes weight * grad to a choice's row, and returns this lane's share of grad . row.
template <typename Packed>
__device__ float scale_and_dot(const Packed* grad, const Packed* row, float weight, Packed* grad_row,
                               int64_t width) {
    float sum = 0;
    for (int64_t start = lane_index(); start < width; start += kSumUnroll * kWarpSize) {
        Packed grads[kSumUnroll], packs[kSumUnroll];
        load_packs<kSumUnroll>(grad, 0, start, width, grads);
        load_packs<kSumUnroll>(row, 0, start, width, packs);
        each_pack<kSumUnroll>(start, width, [&](int index) {
            sum += dot(grads[index], packs[index]);
            grad_row[start + index * kWarpSize] = scaled(grads[index], weight);
        });
    }
    return sum;
}

// Gradients of a token's rows and weights. Its row of `grad` comes from memory for the first choice, and from
// the cache for the others.
template <typename Packed>
__device__ void sum_rows_backward(const Choices& choices, int64_t token, const Packed* grad,
                                  const Packed* buffers, int64_t width, Packed* grad_buffers,
                                  float* grad_weights) {
    const TokenChoices of_token(choices, token);
    for (int rank = 0; rank < choices.top_k; ++rank) {
        const int32_t row = of_token.row(rank);
        const float weight = of_token.weight(rank);
        float sum = 0;
        if (row != kNone) {
            sum = scale_and_dot(grad, buffers + row * width, weight, grad_buffers + row * width, width);
        }
        sum = warp_sum(sum);
        if (lane_index() == 0) {
            grad_weights[rank] = sum;
        }
    }
}

template <typename Packed>
__global__ void __launch_bounds__(kRowsThreads, 4)
    combine_backward_kernel(Choices choices, const Packed* grad, const Packed* buffers, int64_t width,
                            Packed* grad_buffers, float* grad_weights) {
    const int64_t warp = warp_of_grid();
    if (warp < choices.num_tokens) {
        sum_rows_backward(choices, warp, grad + warp * width, buffers, width, grad_buffers,
                          grad_weights + warp * choices.top_k);
    } else {
        zero_empty_rows(grad_buffers, choices.bins, (warp - choices.num_tokens) * kWarpSize, width);
    }
}

// A warp a token, then a warp for each 32 rows of the buffers, if it zeroes them.
inline int64_t blocks_for(int64_t tokens, int64_t buffer_rows) {
    return ceil_div<int64_t>(tokens + ceil_div<int64_t>(buffer_rows, kWarpSize), kRowsWarps);
}

// tokens (tokens, d) -> buffers (bins, bin_size, d).
template <typename T>
void launch_dispatch(const Choices& choices, int64_t d, const T* tokens, T* buffers, cudaStream_t stream) {
    with_packs<T>(
        d,
        [&](auto pack) {
            using Packed = decltype(pack);
            launch(dispatch_kernel<Packed>, blocks_for(choices.num_tokens, choices.bins.rows()), kRowsThreads,
                   0, stream, choices, as_packs<Packed>(tokens), d / Packed::kSize,
                   as_packs<Packed>(buffers));
        },
        tokens, buffers);
}

// buffers (bins, bin_size, d) -> tokens (tokens, d).
template <typename T>
void launch_combine(const Choices& choices, int64_t d, const T* buffers, T* tokens, cudaStream_t stream) {
    with_packs<T>(
        d,
        [&](auto pack) {
            using Packed = decltype(pack);
            launch(combine_kernel<Packed>, blocks_for(choices.num_tokens, 0), kRowsThreads, 0, stream,
                   choices, as_packs<Packed>(buffers), d / Packed::kSize, as_packs<Packed>(tokens));
        },
        buffers, tokens);
}

// grad (tokens, d), buffers (bins, bin_size, d) -> grad_buffers alike, grad_weights (tokens, top_k).
template <typename T>
void launch_combine_backward(const Choices& choices, int64_t d, const T* grad, const T* buffers,
                             T* grad_buffers, float* grad_weights, cudaStream_t stream) {
    with_packs<T>(
        d,
        [&](auto pack) {
            using Packed = decltype(pack);
            launch(combine_backward_kernel<Packed>, blocks_for(choices.num_tokens, choices.bins.rows()),
                   kRowsThreads, 0, stream, choices, as_packs<Packed>(grad), as_packs<Packed>(buffers),
                   d / Packed::kSize, as_packs<Packed>(grad_buffers), grad_weights);
        },
        grad, buffers, grad_buffers);
}

}  // namespace mnmt_moe
