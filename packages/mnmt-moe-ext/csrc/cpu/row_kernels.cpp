#include "row_kernels.h"

#include "row_lines.h"

namespace mnmt_moe::MNMT_MOE_ISA {
namespace {

template <bool streamed, typename Element>
void zero(Element* elements, int64_t size) {
    write_row<streamed>(elements, size, [](int64_t, int64_t) { return Packed<Element>{}; });
    finish_streaming<streamed>();
}

// Whether a choice has a row; clears `exist` if that is none of the buffers' rows.
inline bool has_row(const RowPlan& plan, int64_t choice, bool& exist) {
    const int32_t row = plan.rows[choice];
    exist &= row >= -1 && row < plan.num_rows;
    return row >= 0 && row < plan.num_rows;
}

// The row of a choice before `end`, to be prefetched while the choice before it is at work; row 0 if it has
// none. Rows are scattered, and the processor itself foresees only what lies in sequence.
template <typename Element>
inline const Element* coming_row(const RowPlan& plan, const Element* buffers, int64_t choice, int64_t end) {
    bool exist = true;
    const bool has_one = choice < end && has_row(plan, choice, exist);
    return buffers + (has_one ? plan.rows[choice] * plan.width : 0);
}

template <bool streamed, typename Element>
bool dispatch(const RowPlan& plan, const DispatchCall<Element>& call, int64_t begin, int64_t end) {
    bool exist = true;
    for (int64_t token = begin; token < end; ++token) {
        const Element* from = call.tokens + token * plan.width;
        for (int64_t choice = plan.top_k * token; choice < plan.top_k * (token + 1); ++choice) {
            if (has_row(plan, choice, exist)) {
                write_row<streamed>(
                    call.buffers + plan.rows[choice] * plan.width, plan.width,
                    [=](int64_t index, int64_t size) { return load_line(from + index, size); });
            }
        }
    }
    finish_streaming<streamed>();
    return exist;
}

// The rows that a token has, their weights, and the rows of the token after it.
template <typename Element>
struct TokenRows {
    const Element* rows[kMostRows];
    Weight<Element> weights[kMostRows];
    int count = 0;
    const Element* coming[kMostRows];
};

template <typename Element>
inline bool find_rows(const RowPlan& plan, const CombineCall<Element>& call, int64_t token, int64_t end,
                      TokenRows<Element>& token_rows) {
    bool exist = true;
    const int top_k = plan.top_k;
    for (int64_t choice = top_k * token; choice < top_k * (token + 1); ++choice) {
        if (has_row(plan, choice, exist)) {
            token_rows.rows[token_rows.count] = call.buffers + plan.rows[choice] * plan.width;
            token_rows.weights[token_rows.count] = call.weights == nullptr ? 1 : call.weights[choice];
            ++token_rows.count;
        }
    }
    for (int rank = 0; rank < top_k; ++rank) {
        token_rows.coming[rank] = coming_row(plan, call.buffers, top_k * (token + 1) + rank, top_k * end);
    }
    return exist;
}

// Sums a token's rows: `known_count` of them, which spares the loop, or token.count if it is kAnyCount.
constexpr int kAnyCount = -1;

template <bool streamed, int known_count, typename Element>
inline void sum_rows(const TokenRows<Element>& token, int64_t width, Element* out) {
    const TokenRows<Element> from = token;
    const int count = known_count == kAnyCount ? from.count : known_count;
    write_row<streamed>(out, width, [&](int64_t index, int64_t size) {
        __builtin_prefetch(from.coming[0] + index);
        Wide<Element> sum = from.weights[0] * load_wide(from.rows[0] + index, size);
        for (int rank = 1; rank < count; ++rank) {
            __builtin_prefetch(from.coming[rank] + index);
            sum = sum + from.weights[rank] * load_wide(from.rows[rank] + index, size);
        }
        return Line<Element>::narrow(sum);
    });
}

template <bool streamed, typename Element>
inline void write_sum(const TokenRows<Element>& token, int64_t width, Element* out) {
    switch (token.count) {
        case 0:
            return write_row<streamed>(out, width, [](int64_t, int64_t) { return Packed<Element>{}; });
        case 1:
            return sum_rows<streamed, 1>(token, width, out);
        case 2:
            return sum_rows<streamed, 2>(token, width, out);
        default:
            return sum_rows<streamed, kAnyCount>(token, width, out);
    }
}

template <bool streamed, typename Element>
bool combine(const RowPlan& plan, const CombineCall<Element>& call, int64_t begin, int64_t end) {
    bool exist = true;
    for (int64_t token = begin; token < end; ++token) {
        TokenRows<Element> token_rows;
        exist &= find_rows(plan, call, token, end, token_rows);
        write_sum<streamed>(token_rows, plan.width, call.out + token * plan.width);
    }
    finish_streaming<streamed>();
    return exist;
}

// Writes weight * grad and returns <grad, row>.
template <bool streamed, typename Element>
inline Weight<Element> scale_and_dot(const Element* grad, const Element* row, const Element* coming,
                                     Weight<Element> weight, int64_t width, Element* grad_row) {
    Wide<Element> products = {};
    write_row<streamed>(grad_row, width, [&, grad, row, coming, weight](int64_t index, int64_t size) {
        __builtin_prefetch(coming + index);
        const Wide<Element> values = load_wide(grad + index, size);
        products = products + values * load_wide(row + index, size);
        return Line<Element>::narrow(weight * values);
    });
    return sum_of_line(products);
}

template <bool streamed, typename Element>
bool combine_backward(const RowPlan& plan, const CombineBackwardCall<Element>& call, int64_t begin,
                      int64_t end) {
    bool exist = true;
    for (int64_t token = begin; token < end; ++token) {
        const Element* grad = call.grad + token * plan.width;
        for (int64_t choice = plan.top_k * token; choice < plan.top_k * (token + 1); ++choice) {
            call.grad_weights[choice] = 0;
            if (has_row(plan, choice, exist)) {
                const int64_t row = plan.rows[choice] * plan.width;
                const Element* coming = coming_row(plan, call.buffers, choice + 1, plan.top_k * end);
                call.grad_weights[choice] =
                    scale_and_dot<streamed>(grad, call.buffers + row, coming, call.weights[choice],
                                            plan.width, call.grad_buffers + row);
            }
        }
    }
    finish_streaming<streamed>();
    return exist;
}

template <bool streamed, typename Element>
constexpr RowKernels<Element> kernels() {
    return {dispatch<streamed, Element>, combine<streamed, Element>, combine_backward<streamed, Element>,
            zero<streamed, Element>};
}

}  // namespace

template <typename Element>
RowKernels<Element> row_kernels(bool streamed) {
    return streamed ? kernels<true, Element>() : kernels<false, Element>();
}

template RowKernels<float> row_kernels(bool streamed);
template RowKernels<Bfloat16> row_kernels(bool streamed);
template RowKernels<double> row_kernels(bool streamed);

}  // namespace mnmt_moe::MNMT_MOE_ISA
