// Bins: the rows of an expert for a group, in the order (experts, groups).
#pragma once

#include "warp.cuh"

namespace mnmt_moe {

struct LayoutShape {
    int64_t groups;
    int64_t tokens;  // of a group
    int num_experts;
    int top_k;

    __host__ __device__ int64_t bins() const { return num_experts * groups; }
    __host__ __device__ int64_t choices() const { return groups * tokens * top_k; }
};

// Where the rows of each bin begin.
struct BinRows {
    const int32_t* bases;  // (experts, groups), or null where each bin has bin_size rows
    int32_t bin_size;

    __device__ int32_t row(int64_t bin, int32_t slot) const {
        return static_cast<int32_t>(bases == nullptr ? bin * bin_size : bases[bin]) + slot;
    }
};

// Writes bases (experts, groups), the rows of all bins before, and ends (experts), the rows through the
// expert's last bin.
void launch_bases(const int32_t* load, const LayoutShape& shape, int32_t capacity, int32_t* bases,
                  int32_t* ends, cudaStream_t stream);

}  // namespace mnmt_moe
