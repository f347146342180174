"""A wrong argument gets a sentence that names it, what it must be and what it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mnmt_moe_ext import cuda, reference_top2_gate, top2_gate

LOGITS = torch.zeros(2, 3, 4)


@pytest.mark.parametrize("gate", [top2_gate, reference_top2_gate])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"logits": LOGITS.half()},
            TypeError,
            "`logits` must be float32, bfloat16 or float64, but is torch.float16.",
        ),
        ({"logits": LOGITS[0]}, ValueError, "`logits` must be (groups, tokens, experts), but is (3, 4)."),
        ({"logits": LOGITS[..., :1]}, ValueError, "`logits` must have at least 2 experts, but has 1."),
        (
            {"padding_mask": torch.zeros(3, 2, dtype=torch.bool)},
            ValueError,
            "`padding_mask` must be (groups, tokens) = (2, 3), but is (3, 2).",
        ),
        (
            {"padding_mask": torch.zeros(2, 3)},
            TypeError,
            "`padding_mask` must be torch.bool, but is torch.float32.",
        ),
        (
            {"padding_mask": torch.zeros(2, 3, dtype=torch.bool, device="meta")},
            ValueError,
            "`padding_mask` must be on cpu like `logits`, but is on meta.",
        ),
        ({"capacity": 0}, ValueError, "`capacity` must be at least 1, but is 0."),
        ({"threshold": 0.0}, ValueError, "`threshold` must be positive, but is 0.0."),
        ({"renormalise": "never"}, ValueError, '`renormalise` must be "before" or "after", but is "never".'),
        (
            {"second_expert_policy": "sampled"},
            ValueError,
            '`second_expert_policy` must be "always" or "random", but is "sampled".',
        ),
        (
            {"second_expert_policy": "random"},
            ValueError,
            '`draws` must be given with `second_expert_policy` "random".',
        ),
        (
            {"draws": torch.zeros(2, 3)},
            ValueError,
            '`draws` must be None with `second_expert_policy` "always".',
        ),
        (
            {"second_expert_policy": "random", "draws": torch.zeros(2, 3).double()},
            TypeError,
            "`draws` must be torch.float32, but is torch.float64.",
        ),
        (
            {"second_expert_policy": "random", "draws": torch.zeros(3)},
            ValueError,
            "`draws` must be (groups, tokens) = (2, 3), but is (3,).",
        ),
    ],
)
def test_messages(gate: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        gate(**{"logits": LOGITS, "capacity": 4, **arguments})


def test_missing_cuda_kernels_name_the_build_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "KERNELS_LOADED", False)
    with FakeTensorMode():
        logits = torch.empty(1, 4, 2, device="cuda")
        with pytest.raises(RuntimeError, match=re.escape("cmake.define.MNMT_MOE_CUDA=ON")):
            top2_gate(logits, capacity=1)
