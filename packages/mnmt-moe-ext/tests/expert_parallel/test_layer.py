"""A mixture-of-experts layer on several ranks is the layer of one process that holds all groups of tokens.

Four processes hold two groups of tokens each; 1, 2 or 4 of them share experts, and the rest hold copies.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from gate_calls import routing_of
from torch import Tensor

from mnmt_moe_ext import RandomKey, Routing

RANKS, GROUPS, TOKENS, EXPERTS, D_MODEL, D_FF = 4, 8, 12, 8, 6, 10
SIZES = (1, 2, 4)
BIAS = torch.linspace(1.5, 0, EXPERTS)
"""It makes up for most of what the logits prefer, so that it changes choices."""


def make_tensors(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Inputs and weights; some tokens are padding, among them all of the last rank."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    padding = torch.rand(GROUPS, TOKENS, generator=generator) < 0.2
    padding[-GROUPS // RANKS :] = True
    return {
        "tokens": normal(GROUPS, TOKENS, D_MODEL),
        "logits": normal(GROUPS, TOKENS, EXPERTS) + torch.linspace(0, 2, EXPERTS).to(dtype),
        "padding": padding,
        "token_ids": torch.arange(GROUPS * TOKENS).view(GROUPS, TOKENS),
        "wi": normal(EXPERTS, D_MODEL, D_FF),
        "wo": normal(EXPERTS, D_FF, D_MODEL),
        "probe": normal(GROUPS, TOKENS, D_MODEL),
    }


def case(
    *,
    num_chunks: int = 1,
    ragged: bool = False,
    recompute: bool = False,
    dtype: torch.dtype = torch.float32,
    **gate: Any,
) -> dict[str, Any]:
    options = {"capacity": 5, "second_expert_policy": "always"} | gate
    how = {"num_chunks": num_chunks, "ragged": ragged, "recompute": recompute}
    return {"tensors": make_tensors(dtype), "gate": options} | how


CASES = {
    "one chunk": case(),
    "three chunks, random second expert": case(
        num_chunks=3, second_expert_policy="random", renormalise="after"
    ),
    "three chunks, recomputed": case(num_chunks=3, recompute=True),
    "three chunks, bfloat16": case(num_chunks=3, dtype=torch.bfloat16),
    "ragged, nothing dropped": case(ragged=True, capacity=None, second_expert_policy="random"),
    "ragged, recomputed": case(ragged=True, recompute=True),
    "one expert": case(num_chunks=2, top_k=1, renormalise="never"),
    "four experts, biased": case(top_k=4, bias=BIAS),
    "ragged, four experts, biased": case(ragged=True, top_k=4, bias=BIAS),
    "eight experts": case(num_chunks=2, top_k=8),
}
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}, torch.bfloat16: {"rtol": 0.02, "atol": 0.1}}


@pytest.fixture(scope="module")
def results(launch: Callable, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank found, case by case."""
    folder = tmp_path_factory.mktemp("layer")
    cases = {f"{name} {size}": ("routed", size, CASES[name]) for name in CASES for size in SIZES}
    torch.save(cases, folder / "cases.pt")
    for ended in launch("rank.py", folder, ranks=RANKS):
        assert ended.status == 0, ended.stderr
    return [torch.load(folder / f"results.{rank}.pt") for rank in range(RANKS)]


def route(logits: Tensor, case: dict[str, Any]) -> Routing:
    """The routing of all groups at once."""
    random = {}
    if case["gate"]["second_expert_policy"] != "always":
        key = RandomKey.make(seed=1, step=2, layer=3)
        random = {"random_key": key, "token_ids": case["tensors"]["token_ids"]}
    return routing_of(logits, case["tensors"]["padding"], **case["gate"], **random)


def in_one_process(case: dict[str, Any]) -> dict[str, Tensor]:
    """Every expert on every token, Σ_k weights[..., k] · FFN of expert k; neither buffers nor chunks."""
    names = ("tokens", "logits", "wi", "wo")
    tokens, logits, wi, wo = leaves = [case["tensors"][name].clone().requires_grad_() for name in names]
    routing = route(logits, case)
    hidden = torch.relu(torch.einsum("gtd,edf->gtef", tokens, wi))
    outputs = torch.einsum("gtef,efd->gted", hidden, wo)
    chosen = routing.experts.clamp(min=0).long()[..., None].expand(-1, -1, -1, D_MODEL)
    combined = (routing.weights[..., None] * outputs.gather(2, chosen)).sum(2).to(tokens.dtype)
    (combined * case["tensors"]["probe"]).sum().backward()
    gradients = {f"{name}.grad": leaf.grad for name, leaf in zip(names, leaves, strict=True)}
    return {
        "experts": routing.experts,
        "slots": routing.slots,
        "weights": routing.weights.detach(),
        "combined": combined.detach(),
        **gradients,
    }


def gathered(results: list[dict[str, Any]], name: str, size: int, key: str) -> Tensor:
    """All groups' values of a case, or all experts' gradients summed over the copies."""
    parts = [result[f"{name} {size}"][key] for result in results]
    if key not in ("wi.grad", "wo.grad"):
        return torch.cat(parts)
    return sum(torch.cat(parts[start : start + size]) for start in range(0, RANKS, size))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_the_layer_is_that_of_one_process(results: list[dict[str, Any]], name: str, size: int) -> None:
    expected = in_one_process(CASES[name])
    for key in ("experts", "slots", "weights"):
        assert torch.equal(gathered(results, name, size, key), expected[key]), key
    tolerance = TOLERANCE[expected["combined"].dtype]
    for key in ("combined", "tokens.grad", "logits.grad", "wi.grad", "wo.grad"):
        torch.testing.assert_close(gathered(results, name, size, key), expected[key], **tolerance)


@pytest.mark.parametrize(
    "name", ["one chunk", "three chunks, random second expert", "one expert", "four experts, biased"]
)
def test_the_cases_drop_tokens(name: str) -> None:
    routing = route(CASES[name]["tensors"]["logits"], CASES[name])
    assert ((routing.experts >= 0) & (routing.slots < 0)).any()


def test_the_bias_changes_choices() -> None:
    biased = CASES["four experts, biased"]
    plain = biased | {"gate": biased["gate"] | {"bias": None}}
    logits = biased["tensors"]["logits"]
    assert not torch.equal(route(logits, biased).experts, route(logits, plain).experts)
