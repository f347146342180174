// The choices of a group take slots, all of a rank before the next rank, in the order of the tokens, while
// their expert has any left; and the rows of the buffers that the slots are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../options.h"

namespace mnmt_moe {

// Writes the slots (tokens, k) of one group's experts (tokens, k), and the load (num_experts, k): the choices
// of each expert, with a slot or without. `used` (num_experts), at first 0, becomes the slots taken. A choice
// that is not kept takes none.
inline void take_slots(const int32_t* experts, int64_t tokens, int64_t num_experts, int64_t top_k,
                       int32_t capacity, int32_t* slots, int32_t* load, int32_t* used) {
    std::fill(load, load + num_experts * top_k, 0);
    for (int64_t rank = 0; rank < top_k; ++rank) {
        for (int64_t choice = rank; choice < tokens * top_k; choice += top_k) {
            const int32_t expert = experts[choice];
            slots[choice] = kNone;
            if (expert == kNone) {
                continue;
            }
            ++load[expert * top_k + rank];
            if (used[expert] < capacity) {
                slots[choice] = used[expert]++;
            }
        }
    }
}

// Returns the rows of the slots 0, (groups, num_experts), from the slots that are used. The bins of an expert
// follow each other, and those of a ragged layout, with bin_size 0, are as long as they are used. Writes
// `filled` (experts, groups), or `ends` (experts) of a ragged layout.
inline std::vector<int32_t> lay_out(const std::vector<int32_t>& used, int64_t groups, int64_t num_experts,
                                    int64_t bin_size, int32_t* filled_or_ends) {
    std::vector<int32_t> first_rows(used.size());
    int64_t next = 0;
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        for (int64_t group = 0; group < groups; ++group) {
            const int64_t bin = group * num_experts + expert;
            first_rows[bin] = static_cast<int32_t>(next);
            next += bin_size == 0 ? used[bin] : bin_size;
            if (bin_size != 0) {
                filled_or_ends[expert * groups + group] = used[bin];
            }
        }
        if (bin_size == 0) {
            filled_or_ends[expert] = static_cast<int32_t>(next);
        }
    }
    return first_rows;
}

}  // namespace mnmt_moe
