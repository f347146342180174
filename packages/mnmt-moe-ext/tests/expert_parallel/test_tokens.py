"""Tokens that travel once to each rank of their experts are computed as by one process.

Four processes have tokens; 1, 2 or 4 of them share experts, and the rest hold copies.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor

RANKS, EXPERTS, D_MODEL, D_FF = 4, 8, 6, 10
RANK_SIZES = (1, 2, 4)
UNEVEN, SOME_EMPTY, EMPTY = [5, 9, 1, 7], [0, 9, 0, 4], [0, 0, 0, 0]


def make_tensors(
    top_k: int, sizes: list[int], *, dropped: float, spread: float = 1.0, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Tokens of all ranks, different experts for each of its choices, and slots for some of them.

    `spread`: share of the experts, from the first, that are ever chosen.
    """
    generator = torch.Generator().manual_seed(10 * top_k + sum(sizes))

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    num_tokens, num_chosen = sum(sizes), max(top_k, round(spread * EXPERTS))
    experts = torch.rand(1, num_tokens, num_chosen, generator=generator).argsort(dim=2)[..., :top_k].int()
    slots = torch.zeros_like(experts)
    slots[torch.rand(slots.shape, generator=generator) < dropped] = -1
    weights = torch.rand(1, num_tokens, top_k, generator=generator)
    return {
        "tokens": normal(1, num_tokens, D_MODEL),
        "experts": experts,
        "slots": slots,
        "weights": weights * (slots >= 0),
        "wi": normal(EXPERTS, D_MODEL, D_FF),
        "wo": normal(EXPERTS, D_FF, D_MODEL),
        "probe": normal(1, num_tokens, D_MODEL),
    }


def case(
    top_k: int, sizes: list[int], *, num_chunks: int = 1, compiled: bool = False, **options: Any
) -> dict[str, Any]:
    tensors = make_tensors(top_k, sizes, **{"dropped": 0.2} | options)
    return {"tensors": tensors, "sizes": sizes, "num_chunks": num_chunks, "compiled": compiled}


CASES = {
    **{f"{k} experts, uneven": case(k, UNEVEN) for k in (1, 2, 8)},
    **{f"{k} experts, compiled": case(k, UNEVEN, compiled=True) for k in (1, 3, 8)},
    "two chunks": case(2, UNEVEN, num_chunks=2),
    "three chunks, compiled": case(3, UNEVEN, num_chunks=3, compiled=True),
    "some ranks empty": case(2, SOME_EMPTY),
    "some ranks empty, two chunks": case(2, SOME_EMPTY, num_chunks=2, compiled=True),
    "all ranks empty": case(2, EMPTY, compiled=True),
    "all choices dropped": case(2, UNEVEN, dropped=1.0, compiled=True),
    "nothing dropped": case(2, UNEVEN, dropped=0.0, compiled=True),
    "all experts on the first rank": case(2, UNEVEN, spread=0.25, compiled=True),
    "bfloat16": case(4, UNEVEN, dtype=torch.bfloat16),
    "bfloat16, compiled": case(4, UNEVEN, dtype=torch.bfloat16, compiled=True),
}
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}, torch.bfloat16: {"rtol": 0.03, "atol": 0.2}}


@pytest.fixture(scope="module")
def results(launch: Callable, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank found, case by case."""
    folder = tmp_path_factory.mktemp("tokens")
    cases = {f"{name} {size}": (size, CASES[name]) for name in CASES for size in RANK_SIZES}
    torch.save(cases, folder / "cases.pt")
    for ended in launch("token_rank.py", folder, ranks=RANKS):
        assert ended.status == 0, ended.stderr
    return [torch.load(folder / f"results.{rank}.pt") for rank in range(RANKS)]


def in_one_process(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every expert on every token, Σ_k weights[..., k] · FFN of expert k, in float64."""
    names = ("tokens", "weights", "wi", "wo")
    tokens, weights, wi, wo = leaves = [tensors[name].double().requires_grad_() for name in names]
    hidden = torch.relu(torch.einsum("gtd,edf->gtef", tokens, wi))
    outputs = torch.einsum("gtef,efd->gted", hidden, wo)
    chosen = tensors["experts"].long()[..., None].expand(-1, -1, -1, D_MODEL)
    slots = tensors["slots"] >= 0
    combined = ((weights * slots)[..., None] * outputs.gather(2, chosen)).sum(2)
    (combined * tensors["probe"].double()).sum().backward()
    gradients = {f"{name}.grad": leaf.grad for name, leaf in zip(names, leaves, strict=True)}
    return {"combined": combined.detach(), **gradients}


def gathered(results: list[dict[str, Any]], name: str, size: int, key: str) -> Tensor:
    """All tokens' values of a case, or all experts' gradients summed over the copies."""
    parts = [result[f"{name} {size}"][key] for result in results]
    if key not in ("wi.grad", "wo.grad"):
        return torch.cat(parts, dim=1)
    return sum(torch.cat(parts[start : start + size]) for start in range(0, RANKS, size))


@pytest.mark.parametrize("size", RANK_SIZES)
@pytest.mark.parametrize("name", CASES)
def test_the_layer_is_that_of_one_process(results: list[dict[str, Any]], name: str, size: int) -> None:
    tensors = CASES[name]["tensors"]
    tolerance = TOLERANCE[tensors["tokens"].dtype]
    for key, expected in in_one_process(tensors).items():
        ours = gathered(results, name, size, key)
        torch.testing.assert_close(ours.double(), expected, **tolerance, msg=lambda text, key=key: key + text)


@pytest.mark.parametrize("size", RANK_SIZES)
@pytest.mark.parametrize("name", CASES)
def test_a_token_travels_once_to_each_rank_of_its_experts(
    results: list[dict[str, Any]], name: str, size: int
) -> None:
    tensors, sizes = CASES[name]["tensors"], CASES[name]["sizes"]
    top_k = tensors["experts"].shape[2]
    choices = zip(tensors["experts"][0].tolist(), (tensors["slots"][0] >= 0).tolist(), strict=True)
    ranks_of = [{e * size // EXPERTS for e, held in zip(*token, strict=True) if held} for token in choices]
    for rank, result in enumerate(results):
        first = sum(sizes[:rank])
        rows = sum(len(ranks) for ranks in ranks_of[first : first + sizes[rank]])
        together = range(rank // size * size, rank // size * size + size)
        tokens = sum(sizes[: together[0]]), sum(sizes[: together[-1] + 1])
        back = sum(rank % size in ranks for ranks in ranks_of[slice(*tokens)])
        expected = [(rows, D_MODEL), (rows, 2 * top_k), (back, D_MODEL)]
        counts, *sent = result[f"{name} {size}"]["sent"]
        assert counts == (size, CASES[name]["num_chunks"], 2)
        assert len(sent) == 3 * CASES[name]["num_chunks"]
        assert sum(map(prod, sent)) == sum(map(prod, expected))
        assert len(sent) > 3 or sent == expected


def test_chunks_travel_while_the_experts_compute(
    results: list[dict[str, Any]], overlap: dict[str, list[str]]
) -> None:
    assert [result["order"] for result in results] == [overlap] * RANKS
