// Gradient of combine: of the buffers' rows and of the weights, in one pass.
#pragma once

#include "pack.cuh"

namespace mnmt_moe {

constexpr int kGradientUnroll = 2;

template <typename T>
struct CombineGradient {
    const T* grad;         // (tokens, d)
    const T* buffers;      // (bins, bin_size, d)
    const float* weights;  // (tokens, 2)
    const int32_t* rows;   // (tokens, 2)
    Bins bins;
    int64_t num_tokens;
    int64_t d;
    T* grad_buffers;      // (bins, bin_size, d)
    float* grad_weights;  // (tokens, 2)
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

// Writes weight * grad to the rows and adds this lane's share of grad . row to `dots`.
template <typename T, int kWidth>
__device__ void combine_rows_backward(const Pack<T, kWidth>* grad, const RowPair<const Pack<T, kWidth>>& rows,
                                      const RowPair<Pack<T, kWidth>>& grad_rows, const float* weights,
                                      int64_t width, float* dots) {
    for (int64_t start = lane_index(); start < width; start += kGradientUnroll * kWarpSize) {
        Pack<T, kWidth> grads[kGradientUnroll];
        Pack<T, kWidth> packs[kGradientUnroll][2] = {};
        each_pack<kGradientUnroll>(start, width, [&](int index) {
            grads[index] = grad[start + index * kWarpSize];
            for (int rank = 0; rank < 2; ++rank) {
                if (rows.rows[rank] != nullptr) {
                    packs[index][rank] = rows.rows[rank][start + index * kWarpSize];
                }
            }
        });
        each_pack<kGradientUnroll>(start, width, [&](int index) {
            for (int rank = 0; rank < 2; ++rank) {
                if (rows.rows[rank] != nullptr) {
                    dots[rank] += dot(grads[index], packs[index][rank]);
                    grad_rows.rows[rank][start + index * kWarpSize] = scaled(grads[index], weights[rank]);
                }
            }
        });
    }
}

template <typename T, int kWidth>
__device__ void combine_token_backward(const CombineGradient<T>& gradient, int64_t token) {
    using Packed = Pack<T, kWidth>;
    const int64_t width = gradient.d / kWidth;
    const int32_t* rows = gradient.rows + 2 * token;
    const RowPair<const Packed> from(reinterpret_cast<const Packed*>(gradient.buffers), rows,
                                     gradient.bins.rows(), width);
    const RowPair<Packed> to(reinterpret_cast<Packed*>(gradient.grad_buffers), rows, gradient.bins.rows(),
                             width);
    const float weights[2] = {gradient.weights[2 * token], gradient.weights[2 * token + 1]};
    float dots[2] = {0, 0};
    combine_rows_backward<T, kWidth>(reinterpret_cast<const Packed*>(gradient.grad) + token * width, from, to,
                                     weights, width, dots);
    for (int rank = 0; rank < 2; ++rank) {
        const float sum = warp_sum(dots[rank]);
        if (lane_index() == 0) {
            gradient.grad_weights[2 * token + rank] = sum;
        }
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kRowsThreads) combine_backward_kernel(CombineGradient<T> gradient) {
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
