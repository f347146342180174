"""The kernels for every instruction set that the processor has compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import processes
import pytest
import torch
from row_cases import assert_close

from mnmt_moe_ext import build_info

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
AVAILABLE = INSTRUCTION_SETS[: INSTRUCTION_SETS.index(build_info().instruction_set) + 1]
SCRIPT = Path(__file__).with_name("instruction_set.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The results of every instruction set."""
    folder = tmp_path_factory.mktemp("instruction_sets")
    started = [
        processes.start(
            SCRIPT, str(folder / name), log=folder / f"{name}.log", environment={"MNMT_MOE_ISA": name}
        )
        for name in AVAILABLE
    ]
    for process, name in zip(started, AVAILABLE, strict=True):
        process.join()
        assert process.exitcode == 0, (folder / f"{name}.log").read_text()
    return [torch.load(folder / name) for name in AVAILABLE]


def test_the_environment_variable_sets_the_instruction_set(results: list[Any]) -> None:
    assert tuple(used for used, _, _ in results) == AVAILABLE


@pytest.mark.skipif(len(AVAILABLE) == 1, reason="there is one instruction set here")
def test_the_gates_agree(results: list[Any]) -> None:
    (_, expected, _), *others = results
    for _, actual, _ in others:
        for (exact, rounded), (expected_exact, expected_rounded) in zip(actual, expected, strict=True):
            torch.testing.assert_close(exact, expected_exact, rtol=0, atol=0)
            torch.testing.assert_close(rounded, expected_rounded)


@pytest.mark.skipif(len(AVAILABLE) == 1, reason="there is one instruction set here")
def test_the_rows_agree(results: list[Any]) -> None:
    *others, (_, _, expected) = results
    for _, _, actual in others:
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other, terms=512)


def test_an_unknown_instruction_set_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {"MNMT_MOE_ISA": "avx1024"}
    process = processes.start(SCRIPT, str(tmp_path / "results"), log=log, environment=environment)
    process.join()
    assert process.exitcode == 1
    assert "`MNMT_MOE_ISA` must be baseline, avx2 or avx512, but is avx1024" in log.read_text()
