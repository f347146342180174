// `route` on the CPU, the steps of GShard's algorithm 1 (Lepikhin et al. 2021, section 2.2) for any number of
// choices. The auxiliary loss, its last step, is computed from the results in Python.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../route_arguments.h"
#include "blocks.h"
#include "choices.h"
#include "experts_row.h"
#include "gates.h"
#include "second_expert.h"
#include "slots.h"
#include "weights.h"

namespace mnmt_moe {
namespace {

// Arguments and results of a call that concern single tokens. n = groups * tokens.
template <typename T>
struct Tokens {
    Tokens(const RouteCall& call, const T* bias_)
        : num_experts(call.shape.num_experts),
          top_k(call.shape.top_k),
          threshold(call.threshold),
          renormalise(call.renormalise),
          logits(read<T>(call.logits)),
          padding_mask(read<bool>(call.padding_mask)),
          bias(bias_),
          forced(read<int32_t>(call.choices)),
          token_ids(read<int64_t>(call.token_ids)),
          choices(write<int32_t>(call.used_choices)),
          experts(write<int32_t>(call.experts)),
          slots(write<int32_t>(call.slots)),
          rows(write<int32_t>(call.rows)),
          weights(write<T>(call.weights)),
          log_sums(write<T>(call.log_sums)) {
        if (token_ids != nullptr) {
            const auto* seed_and_step = read<int64_t>(call.seed_and_step);
            key = {seed_and_step[0], seed_and_step[1], call.layer};
        }
    }

    int64_t num_experts, top_k;
    double threshold;
    Renormalise renormalise;
    DrawKey key{};
    const T* logits;           // (n, num_experts)
    const bool* padding_mask;  // (n)
    const T* bias;             // (padded num_experts)
    const int32_t* forced;     // (n, k), or null to choose the largest logits
    const int64_t* token_ids;  // (n), or null to keep every second choice
    int32_t* choices;          // (n, k)
    int32_t* experts;          // (n, k): the choices that are kept
    int32_t* slots;            // (n, k)
    int32_t* rows;             // (n, k)
    T* weights;                // (n, k): the gates of the choices, until they have slots
    T* log_sums;               // (n)
};

template <typename T>
void write_padding(const Tokens<T>& tokens, int64_t token) {
    for (int64_t choice = token * tokens.top_k; choice < (token + 1) * tokens.top_k; ++choice) {
        tokens.choices[choice] = tokens.experts[choice] = kNone;
        tokens.weights[choice] = 0;
    }
    tokens.log_sums[token] = 0;
}

// Writes the token's choices, as they are given or by its logits.
template <typename T>
MNMT_MOE_INLINE void choose(const Tokens<T>& tokens, int64_t token, const T* logits, int32_t* choices) {
    if (tokens.forced == nullptr) {
        choose_largest(logits, tokens.bias, padded(tokens.num_experts), tokens.top_k, choices);
    } else {
        std::copy_n(tokens.forced + token * tokens.top_k, tokens.top_k, choices);
    }
}

template <typename T>
MNMT_MOE_INLINE bool keeps_second(const Tokens<T>& tokens, int64_t token, const T* logits,
                                  const int32_t* choices, T largest) {
    if (tokens.token_ids == nullptr) {
        return true;
    }
    const auto [seed, step, layer] = tokens.key;
    const double bound = uniform_draw(seed, step, layer, tokens.token_ids[token]) * tokens.threshold;
    return exceeds(bound, logits, padded(tokens.num_experts), choices, largest, tokens.renormalise);
}

// Everything of a token that depends on no other tokens. Adds its gates to `gate_sums`; `row` is scratch
// memory; both are (padded num_experts).
template <typename T>
MNMT_MOE_INLINE void route_token(const Tokens<T>& tokens, int64_t token, T* row, T* gate_sums) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const int64_t first = token * tokens.top_k;
    const int32_t length = padded(tokens.num_experts);
    int32_t* choices = tokens.choices + first;
    load_row(tokens.logits + token * tokens.num_experts, tokens.num_experts, row);
    choose(tokens, token, row, choices);
    const T largest = largest_logit(row, length);
    const bool second_kept = keeps_second(tokens, token, row, choices, largest);
    // Logits that are all -infinity sum up to 0, whose logarithm is -infinity; shifted they would be NaN.
    const T shift = largest == lowest ? 0 : largest;
    const T sum = exponentiate(row, length, shift), scale = 1 / sum;
    for (int32_t expert = 0; expert < length; ++expert) {
        gate_sums[expert] += row[expert] * scale;
    }
    for (int64_t rank = 0; rank < tokens.top_k; ++rank) {
        tokens.experts[first + rank] = rank != 1 || second_kept ? choices[rank] : kNone;
        tokens.weights[first + rank] = row[choices[rank]] / sum;
    }
    tokens.log_sums[token] = shift + std::log(sum);
}

template <typename T>
MNMT_MOE_SHORT_CLONES void route_block(const Tokens<T>& tokens, int64_t begin, int64_t end, T* row,
                                       T* gate_sums) {
    for (int64_t token = begin; token < end; ++token) {
        if (tokens.padding_mask[token]) {
            write_padding(tokens, token);
        } else {
            route_token(tokens, token, row, gate_sums);
        }
    }
}

// Returns the sums of the gates over the tokens of each block, (blocks, padded num_experts).
template <typename T>
std::vector<T> route_tokens(const Tokens<T>& tokens, const Blocks& blocks) {
    const int32_t length = padded(tokens.num_experts);
    std::vector<T> block_sums(blocks.groups * blocks.per_group() * length);
    blocks.in_parallel([&](int64_t block) {
        std::vector<T> row(length);
        route_block(tokens, blocks.begin(block), blocks.end(block), row.data(),
                    block_sums.data() + block * length);
    });
    return block_sums;
}

// Writes the mean gates (num_experts) of a group's real tokens, from the sums of its blocks.
template <typename T>
void average_gates(const T* block_sums, const Blocks& blocks, int32_t real_tokens, T* means) {
    const int32_t length = padded(blocks.num_experts);
    for (int64_t expert = 0; expert < blocks.num_experts; ++expert) {
        double sum = 0;
        for (int64_t block = 0; block < blocks.per_group(); ++block) {
            sum += block_sums[block * length + expert];
        }
        means[expert] = static_cast<T>(sum / std::max(1, real_tokens));
    }
}

// Writes the rows and the weights of a block's tokens; `first_rows` (num_experts) are those of its group.
template <typename T>
void finish_block(const Tokens<T>& tokens, int64_t begin, int64_t end, const int32_t* first_rows) {
    for (int64_t choice = begin * tokens.top_k; choice < end * tokens.top_k; ++choice) {
        const int32_t slot = tokens.slots[choice];
        tokens.rows[choice] = slot == kNone ? kNone : first_rows[tokens.experts[choice]] + slot;
    }
    for (int64_t token = begin; token < end; ++token) {
        const int64_t choice = token * tokens.top_k;
        weigh(tokens.slots + choice, tokens.top_k, tokens.renormalise, tokens.weights + choice);
    }
}

// The bias in the type of the logits, 0 without one.
template <typename T>
std::vector<T> bias_of(const RouteCall& call) {
    std::vector<T> bias(padded(call.shape.num_experts));
    const auto* numbers = read<float>(call.bias);
    if (numbers != nullptr) {
        std::copy_n(numbers, call.shape.num_experts, bias.begin());
    }
    return bias;
}

template <typename T>
void run_for(const RouteCall& call) {
    const auto& shape = call.shape;
    const Blocks blocks{shape.groups, shape.tokens, shape.num_experts};
    const std::vector<T> bias = bias_of<T>(call);
    const Tokens<T> tokens(call, bias.data());
    const std::vector<T> block_sums = route_tokens(tokens, blocks);

    std::vector<int32_t> used(shape.bins());
    auto* means = write<T>(call.gate_means);
    auto *load = write<int32_t>(call.load), *real_tokens = write<int32_t>(call.real_tokens);
    torch::stable::parallel_for(0, shape.groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            const int64_t first = group * shape.tokens, bins = group * shape.num_experts;
            const bool* mask = tokens.padding_mask + first;
            real_tokens[group] = static_cast<int32_t>(std::count(mask, mask + shape.tokens, false));
            average_gates(block_sums.data() + group * blocks.per_group() * padded(shape.num_experts), blocks,
                          real_tokens[group], means + bins);
            take_slots(tokens.experts + first * tokens.top_k, shape.tokens, shape.num_experts, tokens.top_k,
                       call.capacity, tokens.slots + first * tokens.top_k, load + bins * tokens.top_k,
                       used.data() + bins);
        }
    });

    const std::vector<int32_t> first_rows =
        lay_out(used, shape.groups, shape.num_experts, call.bin_size, write<int32_t>(call.filled_or_ends));
    blocks.in_parallel([&](int64_t block) {
        finish_block(tokens, blocks.begin(block), blocks.end(block),
                     first_rows.data() + blocks.group_of(block) * shape.num_experts);
    });
}

void run(const RouteCall& call) {
    if (call.choices.has_value()) {
        check_choices(*call.choices, read<bool>(call.padding_mask), call.shape.num_experts);
    }
    call.logits.scalar_type() == ScalarType::Float ? run_for<float>(call) : run_for<double>(call);
}

}  // namespace
}  // namespace mnmt_moe

STABLE_TORCH_LIBRARY_IMPL(mnmt_moe_ext, CPU, library) {
    library.impl("route", TORCH_BOX(&mnmt_moe::route<mnmt_moe::run>));
}
