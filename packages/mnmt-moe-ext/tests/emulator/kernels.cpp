// The kernels of csrc/cuda as C functions on host memory, for the tests beside this file. Each returns null, or
// an error message.
#include <exception>
#include <string>

#include "gate.cuh"
#include "gate_backward.cuh"
#include "layout.cuh"
#include "rows.cuh"
#include "rows_backward.cuh"

namespace {

using namespace mnmt_moe;

template <typename Function>
const char* caught(const Function& function) {
    static std::string message;
    try {
        function();
    } catch (const std::exception& error) {
        message = error.what();
        return message.c_str();
    }
    return nullptr;
}

// Calls function(Element{}).
template <typename Function>
const char* with_element(bool bfloat16, const Function& function) {
    return caught([&] {
        if (bfloat16) {
            function(__nv_bfloat16{});
        } else {
            function(float{});
        }
    });
}

// The scratch memory of a launch, filled with NaNs.
std::vector<uint4> scratch(size_t bytes) {
    return std::vector<uint4>(bytes / sizeof(uint4) + 1, uint4{~0u, ~0u, ~0u, ~0u});
}

}  // namespace

extern "C" {

void set_order(int64_t order) { emulator::order = static_cast<uint64_t>(order); }

const char* top2_gate(int64_t groups, int64_t tokens, int64_t num_experts, int64_t bfloat16,
                      const void* logits, const bool* padding, const int32_t* forced,
                      const int64_t* seed_and_step, const int64_t* token_ids, int64_t layer, int64_t capacity,
                      int64_t policy, double threshold, int64_t renormalise_after, float* weights,
                      float* loss, int32_t* experts, int32_t* slots, int32_t* load, int32_t* choices,
                      float* log_sums) {
    const GateShape shape{groups, tokens, static_cast<int>(num_experts)};
    const GateOptions options{static_cast<int32_t>(capacity), static_cast<Policy>(policy), threshold,
                              renormalise_after != 0};
    auto memory = scratch(workspace_bytes(shape));
    return with_element(bfloat16, [&](auto element) {
        using Logit = decltype(element);
        launch_gate<Logit>(
            {static_cast<const Logit*>(logits), padding, forced, Draws{seed_and_step, token_ids, layer}},
            shape, options, {weights, loss, experts, slots, load, choices, log_sums}, memory.data(), nullptr);
    });
}

const char* top2_gate_backward(int64_t groups, int64_t tokens, int64_t num_experts, int64_t bfloat16,
                               const float* grad_weights, const float* grad_loss, const void* logits,
                               const int32_t* choices, const int32_t* slots, const float* log_sums,
                               int64_t renormalise_after, void* grad_logits) {
    const GateShape shape{groups, tokens, static_cast<int>(num_experts)};
    auto counts = scratch(counts_bytes(shape));
    return with_element(bfloat16, [&](auto element) {
        using Logit = decltype(element);
        launch_gate_backward<Logit>(
            {grad_weights, grad_loss, static_cast<const Logit*>(logits), choices, slots, log_sums,
             renormalise_after != 0, shape, reinterpret_cast<int32_t*>(counts.data()),
             static_cast<Logit*>(grad_logits)},
            nullptr);
    });
}

const char* capacity_layout(int64_t groups, int64_t tokens, int64_t num_experts, const int32_t* experts,
                            const int32_t* slots, const int32_t* load, int64_t capacity, int64_t bin_size,
                            int32_t* rows, int32_t* filled) {
    return caught([&] {
        launch_capacity_layout({experts,
                                slots,
                                load,
                                {groups, tokens, static_cast<int>(num_experts)},
                                static_cast<int32_t>(capacity)},
                               static_cast<int32_t>(bin_size), rows, filled, nullptr);
    });
}

const char* ragged_layout(int64_t groups, int64_t tokens, int64_t num_experts, const int32_t* experts,
                          const int32_t* slots, const int32_t* load, int64_t capacity, int32_t* rows,
                          int32_t* ends) {
    auto bases = scratch(sizeof(int32_t) * num_experts * groups);
    return caught([&] {
        launch_ragged_layout({experts,
                              slots,
                              load,
                              {groups, tokens, static_cast<int>(num_experts)},
                              static_cast<int32_t>(capacity)},
                             reinterpret_cast<int32_t*>(bases.data()), rows, ends, nullptr);
    });
}

const char* dispatch(int64_t num_tokens, int64_t d, int64_t bfloat16, const void* tokens, const int32_t* rows,
                     const int32_t* filled, int64_t bins, int64_t bin_size, void* buffers) {
    return with_element(bfloat16, [&](auto element) {
        using T = decltype(element);
        launch_dispatch<T>({static_cast<const T*>(tokens), rows, Bins{filled, bins, bin_size}, num_tokens, d,
                            static_cast<T*>(buffers)},
                           nullptr);
    });
}

const char* combine(int64_t num_tokens, int64_t d, int64_t bfloat16, const void* buffers,
                    const float* weights, const int32_t* rows, int64_t num_rows, void* tokens) {
    return with_element(bfloat16, [&](auto element) {
        using T = decltype(element);
        launch_combine<T>(
            {static_cast<const T*>(buffers), weights, rows, num_rows, num_tokens, d, static_cast<T*>(tokens)},
            nullptr);
    });
}

const char* combine_backward(int64_t num_tokens, int64_t d, int64_t bfloat16, const void* grad,
                             const void* buffers, const float* weights, const int32_t* rows,
                             const int32_t* filled, int64_t bins, int64_t bin_size, void* grad_buffers,
                             float* grad_weights) {
    return with_element(bfloat16, [&](auto element) {
        using T = decltype(element);
        launch_combine_backward<T>(
            {static_cast<const T*>(grad), static_cast<const T*>(buffers), weights, rows,
             Bins{filled, bins, bin_size}, num_tokens, d, static_cast<T*>(grad_buffers), grad_weights},
            nullptr);
    });
}

}  // extern "C"
