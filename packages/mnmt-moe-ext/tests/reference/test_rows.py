"""`dispatch` and `combine` agree with their definition, and with loops over the routing."""

from __future__ import annotations

import itertools

import torch
from hypothesis import given
from row_cases import RowCase, assert_close, row_cases
from torch import Tensor

from mnmt_moe_ext import combine, dispatch, reference
from mnmt_moe_ext.rows import buffer_shape

Place = tuple[int, ...]


def places(case: RowCase) -> dict[Place, Place]:
    """Where in the buffers the choice (group, token, choice) belongs, by the definition of the layouts."""
    routing = case.routing
    found = {}
    for position in itertools.product(*map(range, routing.slots.shape)):
        expert, slot = int(routing.experts[position]), int(routing.slots[position])
        if slot >= 0:
            found[position] = (expert, position[0], slot)
    if case.bin_size is not None:
        return {key: (expert, group * case.bin_size + slot) for key, (expert, group, slot) in found.items()}
    ranks = {place: rank for rank, place in enumerate(sorted(found.values()))}
    return {key: (ranks[place],) for key, place in found.items()}


@given(row_cases())
def test_dispatch_by_loops(case: RowCase) -> None:
    tokens, layout = case.tokens(), case.layout()
    expected = torch.zeros(*buffer_shape(layout), case.d_model, dtype=case.dtype)
    for (group, token, _), place in places(case).items():
        expected[place] = tokens[group, token]
    assert torch.equal(dispatch(tokens, layout), expected)


@given(row_cases())
def test_combine_by_loops(case: RowCase) -> None:
    layout, weights = case.layout(), case.weights()
    outputs = case.normal(*buffer_shape(layout), case.d_model)
    expected = torch.zeros(*case.routing.slots.shape[:2], case.d_model, dtype=weights.dtype)
    for (group, token, choice), place in places(case).items():
        expected[group, token] += weights[group, token, choice] * outputs[place].to(weights.dtype)
    assert_close(combine(outputs, weights, layout), expected.to(case.dtype))


@given(row_cases())
def test_dispatch(case: RowCase) -> None:
    layout, tokens = case.layout(), case.tokens()
    actual, expected = dispatch(tokens, layout), reference.dispatch(tokens, layout)
    assert torch.equal(actual, expected)
    grad = case.normal(*actual.shape)
    (actual_grad,) = torch.autograd.grad(actual, tokens, grad)
    # The reference adds up bfloat16 gradients in bfloat16.
    wide = tokens.detach().to(case.weights().dtype).requires_grad_()
    (expected_grad,) = torch.autograd.grad(reference.dispatch(wide, layout), wide, grad.to(wide.dtype))
    assert_close(actual_grad, expected_grad.to(case.dtype))


def gradients(summed: Tensor, outputs: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(summed, (outputs, weights), grad)


@given(row_cases())
def test_combine(case: RowCase) -> None:
    layout, weights = case.layout(), case.weights()
    outputs = case.normal(*buffer_shape(layout), case.d_model)
    actual, expected = combine(outputs, weights, layout), reference.combine(outputs, weights, layout)
    assert actual.dtype == case.dtype
    assert_close(actual, expected)
    grad = case.normal(*actual.shape)
    for one, other in zip(
        gradients(actual, outputs, weights, grad), gradients(expected, outputs, weights, grad), strict=True
    ):
        assert one.dtype == other.dtype
        assert_close(one, other, terms=case.d_model)
