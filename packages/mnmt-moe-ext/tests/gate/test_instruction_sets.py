"""The kernels for every instruction set that the processor has route alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mnmt_moe_ext import build_info

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
AVAILABLE = INSTRUCTION_SETS[: INSTRUCTION_SETS.index(build_info().instruction_set) + 1]

ROUTE = """
import sys
import torch
from mnmt_moe_ext import RandomKey, build_info, top2_gate

results = [build_info().instruction_set]
for dtype in (torch.float32, torch.bfloat16, torch.float64):
    for num_experts in (2, 16, 33, 200):
        for policy in ("always", "random", "sampled"):
            generator = torch.Generator().manual_seed(num_experts)
            logits = torch.randn(2, 300, num_experts, generator=generator).to(dtype).requires_grad_()
            key = RandomKey.make(seed=1, step=2)
            routing = top2_gate(
                logits, capacity=20, second_expert_policy=policy, random_key=key, renormalise="after"
            )
            (routing.weights[..., 0].sum() + routing.auxiliary_loss).backward()
            exact = (routing.experts, routing.slots, routing.load)
            rounded = (routing.weights.detach(), routing.auxiliary_loss.detach(), logits.grad)
            results.append((exact, rounded))
torch.save(results, sys.argv[1])
"""


def results_of(instruction_set: str, folder: Path) -> list[object]:
    path = folder / f"{instruction_set}.pt"
    environment = {**os.environ, "MNMT_MOE_ISA": instruction_set}
    subprocess.run([sys.executable, "-c", ROUTE, str(path)], env=environment, check=True)
    results: list[object] = torch.load(path)
    return results


@pytest.mark.skipif(len(AVAILABLE) == 1, reason="there is one instruction set here")
def test_all_route_alike(tmp_path: Path) -> None:
    expected_set, *expected = results_of(AVAILABLE[0], tmp_path)
    assert expected_set == AVAILABLE[0]
    for instruction_set in AVAILABLE[1:]:
        actual_set, *actual = results_of(instruction_set, tmp_path)
        assert actual_set == instruction_set
        for (exact, rounded), (expected_exact, expected_rounded) in zip(actual, expected, strict=True):  # type: ignore[misc]
            torch.testing.assert_close(exact, expected_exact, rtol=0, atol=0)
            torch.testing.assert_close(rounded, expected_rounded)


def test_an_unknown_instruction_set_is_named() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", "import mnmt_moe_ext; mnmt_moe_ext.build_info()"],
        env={**os.environ, "MNMT_MOE_ISA": "avx1024"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "`MNMT_MOE_ISA` must be baseline, avx2 or avx512, but is avx1024" in finished.stderr
