// The rows of the experts' buffers. A bin is the rows of an expert for a group, in the order (experts,
// groups).
#pragma once

#include "blocks.cuh"

namespace mnmt_moe {

// Where the rows of each bin begin.
struct BinRows {
    const int32_t* bases;  // (experts, groups), or null where each bin has bin_size rows
    int32_t bin_size;

    __device__ int32_t row(int64_t bin, int32_t slot) const {
        return static_cast<int32_t>(bases == nullptr ? bin * bin_size : bases[bin]) + slot;
    }
};

// One block.
__global__ void __launch_bounds__(kBlockThreads)
    bases_kernel(int32_t* bases, int64_t groups, int num_experts, int32_t* ends) {
    const int64_t bins = num_experts * groups;
    const int32_t total = replace_by_prefix_sums(bases, bins);
    for (int expert = thread_index(); expert < num_experts; expert += kBlockThreads) {
        const int64_t next = (expert + 1) * groups;
        ends[expert] = next < bins ? bases[next] : total;
    }
}

// Replaces `filled` (experts, groups) by the rows of all bins before, and writes `ends` (experts), the rows
// through the expert's last bin.
inline void launch_bases(int32_t* filled, int64_t groups, int num_experts, int32_t* ends,
                         cudaStream_t stream) {
    launch(bases_kernel, 1, kBlockThreads, sizeof(int32_t) * kBlockWarps, stream, filled, groups, num_experts,
           ends);
}

}  // namespace mnmt_moe
