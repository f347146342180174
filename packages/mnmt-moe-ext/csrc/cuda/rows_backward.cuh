// Gradient of combine: of the buffers' rows and of the weights, in one pass.
#pragma once

#include "pack.cuh"

namespace mnmt_moe {

constexpr int kGradientUnroll = 2;

template <typename T>
struct CombineGradient {
    const T* grad;         // (tokens, d)
    const T* buffers;      // (bins, bin_size, d)
    const float* weights;  // (tokens, top_k)
    const int32_t* rows;   // (tokens, top_k)
    int top_k;
    Bins bins;
    int64_t num_tokens;
    int64_t d;
    T* grad_buffers;      // (bins, bin_size, d)
    float* grad_weights;  // (tokens, top_k)
};

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

// Writes weight * grad to a choice's row, and returns this lane's share of grad . row.
template <typename T, int kWidth>
__device__ float write_row(const Pack<T, kWidth>* grad, const Pack<T, kWidth>* row, float weight,
                           Pack<T, kWidth>* grad_row, int64_t width) {
    float sum = 0;
    for (int64_t start = lane_index(); start < width; start += kGradientUnroll * kWarpSize) {
        Pack<T, kWidth> grads[kGradientUnroll], packs[kGradientUnroll];
        load_packs<kGradientUnroll>(grad, 0, start, width, grads);
        load_packs<kGradientUnroll>(row, 0, start, width, packs);
        each_pack<kGradientUnroll>(start, width, [&](int index) {
            sum += dot(grads[index], packs[index]);
            grad_row[start + index * kWarpSize] = scaled(grads[index], weight);
        });
    }
    return sum;
}

// A token's row of `grad` comes from memory for the first choice, and from the cache for the others.
template <typename T, int kWidth>
__device__ void combine_token_backward(const CombineGradient<T>& gradient, int64_t token) {
    using Packed = Pack<T, kWidth>;
    const int64_t width = gradient.d / kWidth;
    const Packed* grad = reinterpret_cast<const Packed*>(gradient.grad) + token * width;
    const TokenRows rows(gradient.rows, gradient.weights, token, gradient.top_k, gradient.bins.rows());
    for (int rank = 0; rank < gradient.top_k; ++rank) {
        const int32_t row = rows.row(rank);
        const float weight = rows.weight(rank);
        float sum = 0;
        if (row != kNone) {
            sum = write_row(grad, reinterpret_cast<const Packed*>(gradient.buffers) + row * width, weight,
                            reinterpret_cast<Packed*>(gradient.grad_buffers) + row * width, width);
        }
        sum = warp_sum(sum);
        if (lane_index() == 0) {
            gradient.grad_weights[gradient.top_k * token + rank] = sum;
        }
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kRowsThreads, 4) combine_backward_kernel(CombineGradient<T> gradient) {
    const int64_t warp = warp_of_grid();
    if (warp < gradient.num_tokens) {
        combine_token_backward<T, kWidth>(gradient, warp);
    } else {
        zero_empty_rows(reinterpret_cast<Pack<T, kWidth>*>(gradient.grad_buffers), gradient.bins,
                        (warp - gradient.num_tokens) * kWarpSize, gradient.d / kWidth);
    }
}

template <typename T>
void launch_combine_backward(const CombineGradient<T>& gradient, cudaStream_t stream) {
    with_pack_width<T>(
        gradient.d,
        [&](auto width) {
            launch(combine_backward_kernel<T, decltype(width)::value>,
                   blocks_for(gradient.num_tokens, gradient.bins.rows()), kRowsThreads, 0, stream, gradient);
        },
        gradient.grad, gradient.buffers, gradient.grad_buffers);
}

}  // namespace mnmt_moe
