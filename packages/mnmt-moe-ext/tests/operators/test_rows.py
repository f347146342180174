"""The operators behave as torch expects of an operator: gradients, tracing, compilation, checks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from row_cases import random_routing
from torch import Tensor

from mnmt_moe_ext import Layout, Routing, combine, dispatch, reference, route
from mnmt_moe_ext.rows import buffer_shape

OPERATORS = torch.ops.mnmt_moe_ext
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
RAGGED = pytest.mark.parametrize("ragged", [False, True])


def make_layout(*, ragged: bool, tokens: int = 7, top_k: int = 2) -> tuple[Routing, Layout]:
    routing = random_routing(groups=2, tokens=tokens, num_experts=3, capacity=4, top_k=top_k)
    if ragged:
        return routing, reference.ragged_layout(routing)
    return routing, reference.capacity_layout(routing, bin_size=5)


def flat_arguments(dtype: torch.dtype, *, ragged: bool = False) -> dict[str, Any]:
    """The arguments of the operators, for 14 tokens."""
    routing, layout = make_layout(ragged=ragged)
    generator = torch.Generator().manual_seed(0)
    weight_dtype = torch.promote_types(dtype, torch.float32)
    num_rows = layout.filled.shape[0] * layout.bin_size
    return {
        "tokens": torch.randn(14, 9, generator=generator).to(dtype).requires_grad_(),
        "buffers": torch.randn(num_rows, 9, generator=generator).to(dtype).requires_grad_(),
        "weights": routing.weights.view(-1, 2).to(weight_dtype).requires_grad_(),
        "rows": layout.rows.view(-1, 2),
        "filled": layout.filled,
        "bin_size": layout.bin_size,
    }


def take(arguments: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(arguments[name] for name in (*names, "rows", "filled", "bin_size"))


@DTYPES
@RAGGED
def test_opcheck(dtype: torch.dtype, ragged: bool) -> None:
    arguments = flat_arguments(dtype, ragged=ragged)
    torch.library.opcheck(OPERATORS.dispatch.default, take(arguments, "tokens"))
    torch.library.opcheck(OPERATORS.combine.default, take(arguments, "buffers", "weights"))
    buffers, _, *layout = take(arguments, "buffers", "weights")
    torch.library.opcheck(OPERATORS.combine.default, (buffers, None, *layout))
    detached = {name: arguments[name].detach() for name in ("tokens", "buffers", "weights")}
    backward_arguments = take({**arguments, **detached}, "tokens", "buffers", "weights")
    torch.library.opcheck(OPERATORS.combine_backward.default, backward_arguments)


@RAGGED
@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_gradcheck(ragged: bool, top_k: int) -> None:
    routing, layout = make_layout(ragged=ragged, top_k=top_k)
    tokens = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    outputs = torch.randn(*buffer_shape(layout), 3, dtype=torch.float64, requires_grad=True)
    weights = routing.weights.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: dispatch(x, layout), (tokens,))
    assert torch.autograd.gradgradcheck(lambda x: dispatch(x, layout), (tokens,))
    assert torch.autograd.gradcheck(lambda y, w: combine(y, w, layout), (outputs, weights))


def test_differentiating_combine_twice_raises() -> None:
    routing, layout = make_layout(ragged=False)
    outputs = torch.randn(*buffer_shape(layout), 3, requires_grad=True)
    summed = combine(outputs, routing.weights, layout)
    (gradient,) = torch.autograd.grad(summed.square().sum(), outputs, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated once only"):
        torch.autograd.grad(gradient.sum(), outputs)


@DTYPES
def test_gradients_of_any_strides(dtype: torch.dtype) -> None:
    routing, layout = make_layout(ragged=False)
    tokens = torch.randn(2, 7, 3).to(dtype).requires_grad_()
    weights = routing.weights.to(torch.promote_types(dtype, torch.float32)).requires_grad_()

    def gradients(make: Any) -> tuple[Tensor, ...]:
        outputs = dispatch(tokens, layout)
        grads = torch.autograd.grad(outputs, tokens, make(*outputs.shape), retain_graph=True)
        summed = combine(outputs, weights, layout)
        return grads + torch.autograd.grad(summed, (tokens, weights), make(*summed.shape))

    expanded = gradients(lambda *shape: torch.ones(shape[-1], dtype=dtype).expand(shape))
    transposed = gradients(lambda *shape: torch.ones(shape[::-1], dtype=dtype).permute(2, 1, 0))
    plain = gradients(lambda *shape: torch.ones(shape, dtype=dtype))
    for one, two, three in zip(expanded, transposed, plain, strict=True):
        assert torch.equal(one, three)
        assert torch.equal(two, three)


@pytest.mark.parametrize("dynamic", [False, True])
@RAGGED
def test_compiles_to_one_graph(dynamic: bool, ragged: bool) -> None:
    options: dict[str, Any] = {} if ragged else {"layout": "capacity", "bin_size": 6}

    def layer(tokens: Tensor, logits: Tensor) -> tuple[Tensor, Layout]:
        routing, layout = route(logits, capacity=5, **options)
        buffers = dispatch(2 * tokens, layout)
        return combine(buffers.sin(), routing.weights, layout), layout

    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for num_tokens in (8, 12, 13):
        tokens = torch.randn(2, num_tokens, 6, requires_grad=True)
        logits = torch.randn(2, num_tokens, 4, requires_grad=True)
        (actual, layout), (expected, expected_layout) = (
            function(tokens, logits) for function in (compiled, layer)
        )
        assert torch.equal(layout.rows, expected_layout.rows)
        assert layout.bin_size == expected_layout.bin_size
        torch.testing.assert_close(actual, expected)
        for one, other in zip(
            *(torch.autograd.grad(x.square().sum(), (tokens, logits)) for x in (actual, expected)),
            strict=True,
        ):
            torch.testing.assert_close(one, other)


INT = torch.int32
DISPATCH_MISTAKES = [
    ({"tokens": torch.zeros(14, 9).half()}, "`tokens` must be float32"),
    ({"tokens": torch.zeros(14)}, "`tokens` must have two dimensions"),
    ({"tokens": torch.zeros(13, 9)}, "`rows` must be \\(n, k\\) for `tokens`"),
    ({"rows": torch.zeros(14, 2)}, "`rows` must be int32"),
    ({"rows": torch.zeros(14, 9, dtype=INT)}, "`rows` must be \\(n, k\\), with k in 1 to 8"),
    ({"rows": torch.zeros(14, 0, dtype=INT)}, "`rows` must be \\(n, k\\), with k in 1 to 8"),
    ({"rows": torch.full((14, 2), -2, dtype=INT)}, "`rows` must be -1 or rows of the buffers"),
    ({"rows": torch.full((14, 2), 30, dtype=INT)}, "`rows` must be -1 or rows of the buffers"),
    ({"filled": torch.zeros(6)}, "`filled` must be int32 \\(6\\)"),
    ({"filled": torch.zeros(6, 1, dtype=INT)}, "`filled` must be \\(bins\\)"),
    ({"filled": torch.full((6,), 6, dtype=INT)}, "`filled` must be within"),
    ({"filled": torch.full((6,), -1, dtype=INT)}, "`filled` must be within"),
    ({"bin_size": 2**31 // 6 + 1}, "more rows than int32 can number"),
    ({"bin_size": -1}, "`bin_size` must not be negative"),
]
COMBINE_MISTAKES = [
    ({"buffers": torch.zeros(30, 9).half()}, "`buffers` must be float32"),
    ({"buffers": torch.zeros(29, 9)}, "`buffers` must have bins \\* bin_size rows"),
    ({"weights": torch.zeros(14, 2).double()}, "`weights` must be float32 \\(14, 2\\)"),
    ({"weights": torch.zeros(14, 3)}, "`weights` must be float32 \\(14, 2\\)"),
    ({"rows": torch.full((14, 2), 30, dtype=INT)}, "`rows` must be -1 or rows of the buffers"),
]


@pytest.mark.parametrize(("changes", "message"), DISPATCH_MISTAKES)
def test_direct_calls_of_dispatch_check(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.dispatch(*take({**flat_arguments(torch.float32), **changes}, "tokens"))


@pytest.mark.parametrize(("changes", "message"), COMBINE_MISTAKES)
def test_direct_calls_of_combine_check(changes: dict[str, Any], message: str) -> None:
    arguments = {**flat_arguments(torch.float32), **changes}
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.combine(*take(arguments, "buffers", "weights"))
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.combine_backward(*take(arguments, "tokens", "buffers", "weights"))


@pytest.mark.parametrize("grad", [torch.zeros(14, 8), torch.zeros(13, 9), torch.zeros(14, 9).double()])
def test_direct_calls_of_the_gradient_check(grad: Tensor) -> None:
    arguments = {**flat_arguments(torch.float32), "grad": grad}
    with pytest.raises(RuntimeError, match="`grad` must"):
        OPERATORS.combine_backward(*take(arguments, "grad", "buffers", "weights"))
