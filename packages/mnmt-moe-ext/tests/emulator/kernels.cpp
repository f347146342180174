// The kernels of csrc/cuda as C functions on host memory, for the tests beside this file. Each returns null,
// or an error message.
#include <sys/mman.h>

#include <algorithm>

#include "arrange.cuh"
#include "route.cuh"
#include "route_backward.cuh"
#include "rows.cuh"

namespace {

using emulator::caught;
using namespace mnmt_moe;

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

// The scratch memory of a launch.
class Scratch {
  public:
    explicit Scratch(size_t bytes)
        : bytes_(bytes + 1),
          memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0)) {
        std::memset(memory_, 0xff, std::min(bytes_, emulator::kScratchFilled));
    }
    ~Scratch() { munmap(memory_, bytes_); }

    void* data() const { return memory_; }

  private:
    size_t bytes_;
    void* memory_;
};

}  // namespace

extern "C" {

const char* route(int64_t groups, int64_t tokens, int64_t num_experts, int64_t top_k, const float* logits,
                  const bool* padding, const float* bias, const int32_t* forced, const int64_t* seed_and_step,
                  const int64_t* token_ids, int64_t capacity, int64_t bin_size, int64_t layer,
                  double threshold, int64_t renormalise, float* weights, float* gate_means, float* log_sums,
                  int32_t* experts, int32_t* slots, int32_t* rows, int32_t* filled_or_ends, int32_t* load,
                  int32_t* choices, int32_t* real_tokens) {
    const GateShape shape(groups, tokens, static_cast<int>(num_experts), static_cast<int>(top_k));
    const Scratch memory(GateWorkspace::bytes(shape));
    const Scratch bases(sizeof(int32_t) * num_experts * groups);
    const bool ragged = bin_size == 0;
    const GateLayout layout{rows, ragged ? static_cast<int32_t*>(bases.data()) : filled_or_ends,
                            ragged ? filled_or_ends : nullptr, static_cast<int32_t>(bin_size)};
    return caught([&] {
        launch_gate({logits, padding, bias, forced, {seed_and_step, token_ids, layer}}, shape,
                    {static_cast<int32_t>(capacity), threshold, static_cast<Renormalise>(renormalise)},
                    {weights, gate_means, log_sums, experts, slots, load, choices, real_tokens}, layout,
                    memory.data(), nullptr);
    });
}

const char* route_backward(int64_t groups, int64_t tokens, int64_t num_experts, int64_t top_k,
                           const float* grad_weights, const float* grad_gate_means,
                           const float* grad_log_sums, const float* logits, const int32_t* choices,
                           const int32_t* slots, const float* log_sums, const int32_t* real_tokens,
                           int64_t renormalise, float* grad_logits) {
    const GateShape shape(groups, tokens, static_cast<int>(num_experts), static_cast<int>(top_k));
    return caught([&] {
        launch_gate_backward({grad_weights, grad_gate_means, grad_log_sums, logits, choices, slots, log_sums,
                              real_tokens, static_cast<Renormalise>(renormalise), shape, grad_logits},
                             nullptr);
    });
}

const char* arrange(int64_t length, int64_t num_bins, const int32_t* bins, int32_t* rows, int32_t* ends) {
    const GateShape shape(1, length, static_cast<int>(num_bins), 1);
    const Scratch claims(sizeof(int32_t) * claim_counts(shape));
    const Scratch bases(sizeof(int32_t) * num_bins);
    return caught([&] {
        launch_arrange({bins, shape, static_cast<int32_t*>(claims.data()),
                        static_cast<int32_t*>(bases.data()), ends, rows},
                       nullptr);
    });
}

const char* dispatch(int64_t num_tokens, int64_t d, int64_t top_k, int64_t bfloat16, const void* tokens,
                     const int32_t* rows, const int32_t* filled, int64_t bins, int64_t bin_size,
                     void* buffers) {
    const Choices choices{rows, nullptr, static_cast<int>(top_k), num_tokens, {filled, bins, bin_size}};
    return with_element(bfloat16, [&](auto element) {
        using T = decltype(element);
        launch_dispatch(choices, d, static_cast<const T*>(tokens), static_cast<T*>(buffers), nullptr);
    });
}

const char* combine(int64_t num_tokens, int64_t d, int64_t top_k, int64_t bfloat16, const void* buffers,
                    const float* weights, const int32_t* rows, int64_t num_rows, void* tokens) {
    const Choices choices{rows, weights, static_cast<int>(top_k), num_tokens, {nullptr, 1, num_rows}};
    return with_element(bfloat16, [&](auto element) {
        using T = decltype(element);
        launch_combine(choices, d, static_cast<const T*>(buffers), static_cast<T*>(tokens), nullptr);
    });
}

const char* combine_backward(int64_t num_tokens, int64_t d, int64_t top_k, int64_t bfloat16, const void* grad,
                             const void* buffers, const float* weights, const int32_t* rows,
                             const int32_t* filled, int64_t bins, int64_t bin_size, void* grad_buffers,
                             float* grad_weights) {
    const Choices choices{rows, weights, static_cast<int>(top_k), num_tokens, {filled, bins, bin_size}};
    return with_element(bfloat16, [&](auto element) {
        using T = decltype(element);
        launch_combine_backward(choices, d, static_cast<const T*>(grad), static_cast<const T*>(buffers),
                                static_cast<T*>(grad_buffers), grad_weights, nullptr);
    });
}

}  // extern "C"
