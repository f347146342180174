"""The public functions on a GPU agree with their plain-torch definitions on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from gate_calls import CALLS, Call, make_call, routing_of
from torch import Tensor

import mnmt_moe_ext
from mnmt_moe_ext import (
    Layout,
    RandomKey,
    Routing,
    combine,
    dispatch,
    is_available,
    reference,
    route,
    rows,
)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch.cuda is not available: no GPU to run on"),
    pytest.mark.skipif(
        not is_available(torch.device("cuda")), reason="this installation has no operators for CUDA"
    ),
]

DTYPES = (torch.float32, torch.bfloat16)
LAYOUTS = {"capacity": reference.capacity_layout, "ragged": reference.ragged_layout}
TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 1e-5}, torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2}}


def random_tensor(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def key_on(device: str, step: int = 5) -> RandomKey:
    return RandomKey.make(seed=1 << 35, step=step, layer=3, device=device)


def assert_same_routing(actual: Routing, expected: Routing) -> None:
    for name in ("experts", "slots", "load", "real_tokens"):
        assert torch.equal(getattr(actual, name).cpu(), getattr(expected, name)), name
    for name in ("weights", "gate_means", "log_sums", "auxiliary_loss", "z_loss"):
        torch.testing.assert_close(getattr(actual, name).cpu(), getattr(expected, name), rtol=1e-4, atol=1e-6)


def to_cpu(routing: Routing) -> Routing:
    tensors = {
        name: value.detach().cpu() for name, value in vars(routing).items() if isinstance(value, Tensor)
    }
    return replace(routing, **tensors)


def on(device: str, call: Call) -> dict[str, Any]:
    """The options of a call, on a device."""
    options = {
        name: value.to(device) if isinstance(value, Tensor) else value for name, value in call.options.items()
    }
    return options | ({"random_key": key_on(device)} if call.policy != "always" else {})


def assert_same_gate(call: Call) -> None:
    """Routing and gradient."""
    results = []
    for gate, device in ((routing_of, "cuda"), (reference.top_k_gate, "cpu")):
        leaf = call.logits.to(device).requires_grad_()
        routing = gate(leaf, call.padding_mask.to(device), **on(device, call))
        importance = torch.linspace(-1, 2, routing.weights.numel()).view(routing.weights.shape).to(device)
        scalar = (routing.weights * importance).sum() + 3 * routing.auxiliary_loss / leaf.shape[-1]
        scalar = scalar + 0.1 * routing.z_loss
        results.append((routing, torch.autograd.grad(scalar, leaf)[0].cpu()))
    assert_same_routing(to_cpu(results[0][0]), to_cpu(results[1][0]))
    tolerance = 2e-2 if call.logits.dtype == torch.bfloat16 else 1e-4
    torch.testing.assert_close(results[0][1], results[1][1], rtol=tolerance, atol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_the_gate(name: str) -> None:
    assert_same_gate(CALLS[name])


def test_bfloat16_logits() -> None:
    call = make_call((2, 33, 40), biased=True)
    assert_same_gate(replace(call, logits=call.logits.bfloat16()))


@pytest.mark.parametrize("num_experts", [2, 40, 512, 4096])
@pytest.mark.parametrize("top_k", [2, 8])
def test_many_tokens(num_experts: int, top_k: int) -> None:
    options = {"top_k": min(top_k, num_experts), "capacity": 70, "biased": True}
    assert_same_gate(make_call((2, 4000, num_experts), **options))


@pytest.mark.parametrize("top_k", [1, 2, 8])
@pytest.mark.parametrize(("groups", "num_experts"), [(1, 9), (3, 33), (70, 8), (2, 2048)])
@pytest.mark.parametrize(("kind", "capacity"), [("capacity", 6), ("ragged", 6), ("ragged", None)])
def test_route(kind: Any, capacity: int | None, groups: int, num_experts: int, top_k: int) -> None:
    call = make_call((groups, 50, num_experts), capacity=capacity, top_k=top_k)
    routing, layout = route(call.logits.cuda(), call.padding_mask.cuda(), layout=kind, **call.options)
    expected, expected_layout = reference.route(call.logits, call.padding_mask, layout=kind, **call.options)
    assert_same_routing(routing, expected)
    for name, value in vars(expected_layout).items():
        actual = getattr(layout, name)
        assert torch.equal(actual.cpu(), value) if isinstance(value, Tensor) else actual == value, name


@pytest.mark.parametrize(("length", "num_bins"), [(0, 3), (1, 1), (100_000, 7), (5000, 1500)])
def test_arrange(length: int, num_bins: int) -> None:
    generator = torch.Generator().manual_seed(length)
    bins = torch.randint(-1, num_bins, (length,), generator=generator, dtype=torch.int32)
    for actual, expected in zip(
        rows.arrange(bins.cuda(), num_bins), reference.rows.arrange(bins, num_bins), strict=True
    ):
        assert torch.equal(actual.cpu(), expected)


def test_one_long_group() -> None:
    assert_same_gate(make_call((1, 70_000, 6), capacity=20_000))


def random_routing(num_experts: int, top_k: int = 2) -> Routing:
    logits = random_tensor(3, 50, num_experts)
    return reference.top_k_gate(logits, torch.arange(150).view(3, 50) % 7 == 0, capacity=8, top_k=top_k)


def to_cuda(routing: Routing) -> Routing:
    tensors = {name: value.cuda() for name, value in vars(routing).items() if isinstance(value, Tensor)}
    return replace(routing, **tensors)


def through_experts(
    functions: tuple[Callable[..., Any], ...], tokens: Tensor, routing: Routing
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """What experts that square make of the tokens, and the gradients of tokens and weights."""
    layout_of, dispatch_, combine_ = functions
    leaves = (tokens.requires_grad_(), routing.weights.detach().requires_grad_())
    layout: Layout = layout_of(routing)
    buffers = dispatch_(leaves[0], layout)
    out = combine_(buffers * buffers.float().cos().to(buffers.dtype), leaves[1], layout)
    grad = random_tensor(*out.shape, dtype=out.dtype).to(out.device)
    return out, torch.autograd.grad(out, leaves, grad)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("d", [1, 7, 64, 1024, 1030])
@pytest.mark.parametrize("top_k", [1, 2, 8])
def test_rows(top_k: int, d: int, kind: str, dtype: torch.dtype) -> None:
    routing = random_routing(9, top_k)
    tokens = random_tensor(3, 50, d, dtype=dtype)
    layout_of = LAYOUTS[kind]
    out, grads = through_experts((layout_of, dispatch, combine), tokens.cuda(), to_cuda(routing))
    expected, expected_grads = through_experts(
        (layout_of, reference.dispatch, reference.combine), tokens.float(), routing
    )
    torch.testing.assert_close(out.cpu().float(), expected, **TOLERANCE[dtype])
    torch.testing.assert_close(grads[0].cpu().float(), expected_grads[0], **TOLERANCE[dtype])
    torch.testing.assert_close(
        grads[1].cpu(), expected_grads[1], rtol=2e-2, atol=TOLERANCE[dtype]["atol"] * d
    )


def layer(logits: Tensor, tokens: Tensor, key: RandomKey) -> tuple[Tensor, Tensor]:
    options = {"capacity": 24, "second_expert_policy": "random", "random_key": key}
    routing, layout = route(logits, layout="capacity", **options)
    return combine(dispatch(tokens, layout) * 2, routing.weights, layout), routing.slots


def layer_on_cpu(logits: Tensor, tokens: Tensor, step: int) -> tuple[Tensor, Tensor]:
    options = {"capacity": 24, "second_expert_policy": "random", "random_key": key_on("cpu", step)}
    routing = reference.top_k_gate(logits.cpu(), **options)
    layout = reference.capacity_layout(routing)
    buffers = reference.dispatch(tokens.cpu(), layout)
    return reference.combine(buffers * 2, routing.weights, layout), routing.slots


def test_a_captured_graph_is_replayed_with_another_step_and_other_data() -> None:
    logits, tokens, key = torch.zeros(2, 64, 8).cuda(), torch.zeros(2, 64, 32).cuda(), key_on("cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        layer(logits, tokens, key)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, slots = layer(logits, tokens, key)
    for step in (6, 7):
        logits.copy_(random_tensor(2, 64, 8) * step)
        tokens.copy_(random_tensor(2, 64, 32) + step)
        key.seed_and_step[1] = step
        graph.replay()
        expected, expected_slots = layer_on_cpu(logits, tokens, step)
        assert torch.equal(slots.cpu(), expected_slots)
        torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def sync_is_an_error() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")  # said once, by the fixture
@pytest.mark.usefixtures("sync_is_an_error")
@pytest.mark.parametrize("kind", LAYOUTS)
def test_nothing_waits_for_the_gpu(kind: Any) -> None:
    logits = torch.zeros(2, 64, 8, device="cuda", requires_grad=True)
    tokens = torch.zeros(2, 64, 32, device="cuda", requires_grad=True)
    routing, layout = route(logits, layout=kind, capacity=24)
    out = combine(dispatch(tokens, layout), routing.weights, layout)
    (out.sum() + routing.auxiliary_loss).backward()
    assert logits.grad is not None
    assert tokens.grad is not None


@pytest.fixture
def nccl(tmp_path: Path) -> Iterator[dist.ProcessGroup]:
    """A group of this process alone."""
    store = (tmp_path / "store").as_uri()
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method=store, rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("num_chunks", [1, 3])
def test_tokens_exchanged_by_nccl(nccl: dist.ProcessGroup, num_chunks: int) -> None:
    routing = random_routing(6)
    tokens, scales = random_tensor(3, 50, 16), torch.arange(1.0, 7.0)

    def experts(inputs: Tensor, ends: Tensor) -> Tensor:
        numbers = torch.arange(len(inputs), device=inputs.device)
        expert = torch.searchsorted(ends, numbers, right=True).clamp(max=5)
        return inputs * scales.to(inputs.device)[expert, None]

    results = []
    for device, package in (("cuda", mnmt_moe_ext), ("cpu", reference)):
        routed = to_cuda(routing) if device == "cuda" else routing
        leaf = tokens.to(device).requires_grad_()
        options = {"group": nccl, "num_chunks": num_chunks}
        sums = package.apply_experts_to_tokens(experts, leaf, routed, **options)
        results.append((sums.cpu(), torch.autograd.grad(sums.square().sum(), leaf)[0].cpu()))
    torch.testing.assert_close(*results)


def test_results_are_the_same_every_time() -> None:
    logits = random_tensor(4, 3000, 64).cuda().requires_grad_()
    results = []
    for _ in range(5):
        routing = routing_of(logits, capacity=100)
        (grad,) = torch.autograd.grad(routing.weights.square().sum() + routing.auxiliary_loss, logits)
        results.append((routing.auxiliary_loss, grad))
    assert all(
        torch.equal(loss, results[0][0]) and torch.equal(grad, results[0][1]) for loss, grad in results
    )


@pytest.mark.filterwarnings("default")  # the compiler's own warnings are not ours to mend
def test_torch_compile() -> None:
    logits, tokens, key = random_tensor(2, 64, 8).cuda(), random_tensor(2, 64, 32).cuda(), key_on("cuda")
    compiled = torch.compile(layer, fullgraph=True)
    for actual, expected in zip(compiled(logits, tokens, key), layer(logits, tokens, key), strict=True):
        torch.testing.assert_close(actual, expected)


def test_messages() -> None:
    logits = torch.zeros(1, 4, 2, device="cuda")
    padding_mask = torch.zeros(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match="`padding_mask` must be on cuda:0 like `logits`, but is on cpu"):
        route(logits, padding_mask, capacity=1)
    with pytest.raises(RuntimeError, match="`logits` on a GPU must be float32 or bfloat16"):
        route(logits.double(), capacity=1)
    with pytest.raises(RuntimeError, match="`logits` on a GPU must have at most 4096 experts, but has 4097"):
        route(torch.zeros(1, 1, 4097, device="cuda"), capacity=1)
    with pytest.raises(RuntimeError, match=r"^`padding_mask` .*, but is bool \(1, 4\) on another device$"):
        torch.ops.mnmt_moe_ext.route(logits, padding_mask, *([None] * 4), 2, 1, 0, 0, 0.5, 0)
    _, layout = route(logits, layout="capacity", capacity=1)
    with pytest.raises(ValueError, match="`tokens` must be on cuda:0 like `layout`, but is on cpu"):
        dispatch(torch.zeros(1, 4, 8), layout)
    with pytest.raises(RuntimeError, match="`tokens` on a GPU must be float32 or bfloat16"):
        dispatch(torch.zeros(1, 4, 8, device="cuda").double(), layout)
