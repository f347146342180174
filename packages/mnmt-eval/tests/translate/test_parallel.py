from __future__ import annotations

import re

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.translate.parallel import find_devices


@pytest.mark.parametrize(
    ("gpus", "name", "expected"),
    [
        (0, None, ("cpu",)),
        (2, None, ("cuda:0", "cuda:1")),
        (2, "cuda", ("cuda:0", "cuda:1")),
        (2, "cuda:1", ("cuda:1",)),
        (2, "cpu", ("cpu",)),
    ],
)
def test_every_gpu_that_is_there_is_used(
    monkeypatch: pytest.MonkeyPatch, gpus: int, name: str | None, expected: tuple[str, ...]
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    assert find_devices(name) == expected


@pytest.mark.parametrize(
    ("gpus", "name", "message"),
    [
        (1, "cuda:1", "`device` must be one of cpu, cuda, cuda:0, but is 'cuda:1'."),
        (0, "cuda", "`device` must be one of cpu, but is 'cuda'."),
    ],
)
def test_a_device_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, gpus: int, name: str, message: str
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    with pytest.raises(EvalError, match=f"^{re.escape(message)}$"):
        find_devices(name)
