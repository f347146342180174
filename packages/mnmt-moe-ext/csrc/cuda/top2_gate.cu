// Softmax and top-2 selection on a GPU: one warp a token, lanes striding over the experts.
#include <cuda_runtime_api.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/BFloat16.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "../tensor_checks.h"

namespace mnmt_moe {
namespace {

using torch::headeronly::BFloat16;
using torch::stable::contiguous;
using torch::stable::new_empty;

constexpr int kWarpSize = 32;
constexpr int kTokensPerBlock = 4;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int32_t kNoExpert = std::numeric_limits<int32_t>::max();

struct Candidate {
    float logit;
    int32_t expert;
};

struct Top2 {
    Candidate first;
    Candidate second;
};

// Written so that an expert always outranks `nobody`, even if its logit is NaN.
__device__ bool outranks(Candidate a, Candidate b) {
    return a.logit > b.logit || (!(a.logit < b.logit) && a.expert < b.expert);
}

__device__ Top2 merge(Top2 a, Top2 b) {
    const bool a_leads = outranks(a.first, b.first);
    const Top2 leader = a_leads ? a : b;
    const Candidate runner_up = a_leads ? b.first : a.first;
    return {leader.first, outranks(runner_up, leader.second) ? runner_up : leader.second};
}

__device__ Candidate shuffle(Candidate candidate, int offset) {
    return {__shfl_xor_sync(kAllLanes, candidate.logit, offset),
            __shfl_xor_sync(kAllLanes, candidate.expert, offset)};
}

template <typename Logit>
__device__ Top2 warp_top2(const Logit* row, int num_experts, int lane) {
    const Candidate nobody{-INFINITY, kNoExpert};
    Top2 best{nobody, nobody};
    for (int expert = lane; expert < num_experts; expert += kWarpSize) {
        best = merge(best, Top2{{static_cast<float>(row[expert]), expert}, nobody});
    }
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
        best = merge(best, Top2{shuffle(best.first, offset), shuffle(best.second, offset)});
    }
    return best;
}

template <typename Logit>
__device__ void warp_softmax(const Logit* row, float largest, int num_experts, int lane, float* gates) {
    float sum = 0;
    for (int expert = lane; expert < num_experts; expert += kWarpSize) {
        sum += expf(static_cast<float>(row[expert]) - largest);
    }
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    for (int expert = lane; expert < num_experts; expert += kWarpSize) {
        gates[expert] = expf(static_cast<float>(row[expert]) - largest) / sum;
    }
}

template <typename Logit>
__global__ void select_top2_kernel(const Logit* logits, const bool* padding, int64_t num_tokens,
                                   int num_experts, float* gates, int32_t* choices) {
    const int64_t token = static_cast<int64_t>(blockIdx.x) * kTokensPerBlock + threadIdx.y;
    if (token >= num_tokens) {
        return;
    }
    const int lane = threadIdx.x;
    const Logit* row = logits + token * num_experts;
    float* out = gates + token * num_experts;
    Top2 best{{0, -1}, {0, -1}};
    if (padding[token]) {
        for (int expert = lane; expert < num_experts; expert += kWarpSize) {
            out[expert] = 0;
        }
    } else {
        best = warp_top2(row, num_experts, lane);
        warp_softmax(row, best.first.logit, num_experts, lane, out);
    }
    if (lane == 0) {
        choices[2 * token] = best.first.expert;
        choices[2 * token + 1] = best.second.expert;
    }
}

cudaStream_t current_stream(const Tensor& tensor) {
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream));
    return static_cast<cudaStream_t>(stream);
}

template <typename Logit>
void launch_select_top2(const Tensor& logits, const Tensor& padding, Tensor& gates, Tensor& choices) {
    const int64_t num_tokens = logits.size(0) * logits.size(1);
    if (num_tokens == 0) {
        return;
    }
    const int64_t blocks = (num_tokens + kTokensPerBlock - 1) / kTokensPerBlock;
    STD_TORCH_CHECK(blocks <= std::numeric_limits<int32_t>::max(),
                    "`logits` has too many tokens for one launch");
    select_top2_kernel<Logit>
        <<<static_cast<unsigned>(blocks), dim3(kWarpSize, kTokensPerBlock), 0, current_stream(logits)>>>(
            static_cast<const Logit*>(logits.const_data_ptr()), padding.const_data_ptr<bool>(), num_tokens,
            static_cast<int>(logits.size(2)), gates.mutable_data_ptr<float>(),
            choices.mutable_data_ptr<int32_t>());
    const cudaError_t error = cudaGetLastError();
    STD_TORCH_CHECK(error == cudaSuccess, "top2_select: ", cudaGetErrorString(error));
}

std::tuple<Tensor, Tensor> top2_select_cuda(const Tensor& logits, const Tensor& padding_mask) {
    check_logits(logits, padding_mask);
    const torch::stable::accelerator::DeviceGuard guard(logits.get_device_index());
    const Tensor rows = contiguous(logits);
    const Tensor padding = contiguous(padding_mask);
    Tensor gates = new_empty(rows, rows.sizes(), ScalarType::Float);
    Tensor choices = new_empty(rows, {rows.size(0), rows.size(1), 2}, ScalarType::Int);
    if (rows.scalar_type() == ScalarType::Float) {
        launch_select_top2<float>(rows, padding, gates, choices);
    } else {
        STD_TORCH_CHECK(rows.scalar_type() == ScalarType::BFloat16,
                        "`logits` on a GPU must be float32 or bfloat16");
        launch_select_top2<BFloat16>(rows, padding, gates, choices);
    }
    return {gates, choices};
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CUDA, library) {
    library.impl("top2_select", TORCH_BOX(&mnmt_moe::top2_select_cuda));
}
