"""What two runs are compared by: every number of theirs but times."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load_file

from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.runs.run_record import read_evals

TIMED = ("tokens_per_second", "mfu", "data_wait")


def logged(folder: Path, *, after: int = 0) -> list[dict[str, object]]:
    """Return the lines of metrics.jsonl after a step, without what depends on the time."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if k not in TIMED} for line in lines if line["step"] > after]


def assert_equal_runs(run: Path, expected: Path, *, after: int = 0) -> None:
    """Check that runs have the same weights, losses and checkpoints from a step on, bit for bit."""
    checkpoints, others = (find_checkpoints(folder / "checkpoints") for folder in (run, expected))
    assert [path.name for path in checkpoints] == [path.name for path in others]
    for kind in ("model", "optimizer"):
        one, other = (load_file(paths[-1] / f"{kind}.safetensors") for paths in (checkpoints, others))
        assert one.keys() == other.keys()
        assert all(one[name].equal(other[name]) for name in one)
    assert logged(run, after=after) == logged(expected, after=after)
    assert read_evals(run) == [line for line in read_evals(expected) if line.step > after]
