// Rows of a matrix, moved by a warp in packs of up to 16 bytes.
#pragma once

#include <type_traits>

#include "warp.cuh"

namespace mnmt_moe {

constexpr int kRowsThreads = 256;
constexpr int kRowsWarps = kRowsThreads / kWarpSize;

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
    T values[kWidth];
};

template <typename T>
constexpr int kFullWidth = 16 / sizeof(T);

// The buffers that tokens are dispatched to: bins of bin_size rows, the first filled[bin] of which hold a
// token.
struct Bins {
    const int32_t* filled;
    int64_t count;
    int64_t bin_size;

    __host__ __device__ int64_t rows() const { return count * bin_size; }
};

// The rows of a token's choices in buffers of num_rows rows: lane r has that of rank r, and its weight.
class TokenRows {
  public:
    // weights (tokens, top_k), or null for 1.
    __device__ TokenRows(const int32_t* rows, const float* weights, int64_t token, int top_k,
                         int64_t num_rows) {
        if (lane_index() < top_k) {
            row_ = index_below(rows[top_k * token + lane_index()], num_rows);
            weight_ = weights == nullptr ? 1 : weights[top_k * token + lane_index()];
        }
    }

    // The row of a rank; kNone for none, as for ranks from top_k on. The whole warp calls.
    __device__ int32_t row(int rank) const { return __shfl_sync(kAllLanes, row_, rank); }

    // The whole warp calls.
    __device__ float weight(int rank) const { return __shfl_sync(kAllLanes, weight_, rank); }

  private:
    int32_t row_ = kNone;
    float weight_ = 0;
};

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

template <typename Packed>
__device__ void zero_row(Packed* row, int64_t width) {
    for (int64_t index = lane_index(); index < width; index += kWarpSize) {
        row[index] = Packed{};
    }
}

// Zeroes those of the 32 rows from `start` that hold no token. The whole warp calls.
template <typename Packed>
__device__ void zero_empty_rows(Packed* buffers, const Bins& bins, int64_t start, int64_t width) {
    const int64_t row = start + lane_index();
    const bool empty = row < bins.rows() && row % bins.bin_size >= bins.filled[row / bins.bin_size];
    for (unsigned left = __ballot_sync(kAllLanes, empty); left != 0; left &= left - 1) {
        zero_row(buffers + (start + __ffs(left) - 1) * width, width);
    }
}

// A warp a token, then a warp for each 32 rows of the buffers.
inline int64_t blocks_for(int64_t tokens, int64_t buffer_rows) {
    return ceil_div<int64_t>(tokens + ceil_div<int64_t>(buffer_rows, kWarpSize), kRowsWarps);
}

__device__ inline int64_t warp_of_grid() {
    return static_cast<int64_t>(blockIdx.x) * kRowsWarps + warp_index();
}

inline bool aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

// Calls function(std::integral_constant<int, width of a pack>): the widest that d and the pointers allow.
template <typename T, typename Function, typename... Pointers>
void with_pack_width(int64_t d, const Function& function, const Pointers*... pointers) {
    if (d % kFullWidth<T> == 0 && (aligned(pointers) && ...)) {
        function(std::integral_constant<int, kFullWidth<T>>{});
    } else {
        function(std::integral_constant<int, 1>{});
    }
}

}  // namespace mnmt_moe
