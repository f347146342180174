"""Rows travel to the right expert and back, and so do gradients: exactly, if experts multiply by a number.

Four processes run every case; 1, 2 or 4 of them share experts.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.slow
RANKS, EXPERTS, ROWS = 4, 8, 5
SIZES = (1, 2, 4)


def whole_numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers whose products and sums are exact."""
    return torch.randint(-4, 5, shape, dtype=dtype)


def buffers_case(num_chunks: int, dtype: torch.dtype = torch.float32, **options: Any) -> dict[str, Any]:
    return {
        "buffers": whole_numbers(RANKS, EXPERTS, ROWS, 3, dtype=dtype),
        "scales": torch.arange(1, EXPERTS + 1, dtype=dtype),
        "num_chunks": num_chunks,
        "transposed": False,
        "backwards": 1,
    } | options


EXACT = {
    "one chunk": buffers_case(1),
    "two chunks": buffers_case(2),
    "three chunks": buffers_case(3),
    "more chunks than rows": buffers_case(9),
    "no rows": buffers_case(2, buffers=torch.zeros(RANKS, EXPERTS, 0, 3)),
    "bfloat16": buffers_case(2, torch.bfloat16),
    "neither outputs nor gradients contiguous": buffers_case(2, transposed=True),
    "differentiated twice": buffers_case(2, backwards=2),
}

INSIDE = {"outsider": False}
BUFFERS = {"buffers": torch.ones(EXPERTS, ROWS, 3)}
REFUSED = {
    "ValueError: `buffers` must have a multiple of the group's 4 ranks as experts, but has 6.": INSIDE
    | {"buffers": torch.ones(6, ROWS, 3)},
    "ValueError: `buffers` must be (experts, rows, d), but is (8, 3).": INSIDE
    | {"buffers": torch.ones(EXPERTS, 3)},
    "ValueError: `num_chunks` must be at least 1, but is 0.": INSIDE | BUFFERS | {"num_chunks": 0},
    "ValueError: `experts` must return (2, 20, d_out), but returned (2, 19, 3).": INSIDE | BUFFERS,
    "ValueError: `group` must have this process among its ranks.": BUFFERS | {"outsider": True},
}


@pytest.fixture(scope="module")
def results(launch: Callable, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank found, case by case."""
    folder = tmp_path_factory.mktemp("exchange")
    cases = {f"{name} {size}": ("exact", size, case) for name, case in EXACT.items() for size in SIZES}
    cases |= {message: ("refused", RANKS, case) for message, case in REFUSED.items()}
    cases["order"] = ("order", 2, {"num_chunks": 3})
    torch.save(cases, folder / "cases.pt")
    for ended in launch("rank.py", folder, ranks=RANKS):
        assert ended.status == 0, ended.stderr
    return [torch.load(folder / f"results.{rank}.pt") for rank in range(RANKS)]


def in_one_process(case: dict[str, Any], ranks: slice) -> dict[str, Tensor]:
    """The outputs and gradients of ranks that share experts, (ranks, ...)."""
    buffers = case["buffers"][ranks].clone().requires_grad_()
    scales = case["scales"].clone().requires_grad_()
    outputs = buffers * scales[:, None, None]
    (case["backwards"] * outputs.sum()).backward()
    return {"outputs": outputs.detach(), "buffers.grad": buffers.grad, "scales.grad": scales.grad}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EXACT)
def test_ranks_compute_what_one_process_does(results: list[dict[str, Any]], name: str, size: int) -> None:
    for start in range(0, RANKS, size):
        ranks = slice(start, start + size)
        expected = in_one_process(EXACT[name], ranks)
        found = [result[f"{name} {size}"] for result in results[ranks]]
        for key in ("outputs", "buffers.grad"):
            torch.testing.assert_close(torch.stack([f[key] for f in found]), expected[key], rtol=0, atol=0)
        scales = torch.cat([f["scales.grad"] for f in found])
        torch.testing.assert_close(scales, expected["scales.grad"], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("one chunk", [5]),
        ("two chunks", [3, 2]),
        ("three chunks", [2, 2, 1]),
        ("more chunks than rows", [1, 1, 1, 1, 1]),
    ],
)
def test_chunks_are_nearly_equal(results: list[dict[str, Any]], name: str, sizes: list[int]) -> None:
    for result in results:
        assert result[f"{name} 4"]["seen"] == [(2, RANKS * size, 3) for size in sizes]
        assert result[f"{name} 1"]["seen"] == [(EXPERTS, ROWS, 3)]


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_arguments_are_refused(results: list[dict[str, Any]], message: str) -> None:
    assert [result[message]["error"] for result in results] == [message] * RANKS


def test_chunks_travel_while_the_experts_compute(
    results: list[dict[str, Any]], overlap: dict[str, list[str]]
) -> None:
    assert [result["order"] for result in results] == [overlap] * RANKS
