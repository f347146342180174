"""TensorBoard keeps what a run measures, read back by its own program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mnmt_model import RunError
from mnmt_model.runs.run_record import Eval
from mnmt_model.training.tensorboard import TensorBoard, check_tensorboard

Points = dict[str, list[tuple[int, float]]]
"""{tag: (step, value) of each point}."""


def read(folder: Path) -> Points:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_accumulator.EventAccumulator(str(folder / "tensorboard"), purge_orphaned_data=True)
    events.Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.scalars.Keys()}


def test_lines_and_measurements_become_points(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    tracker = TensorBoard(tmp_path, step=0)
    tracker.log({"step": 5, "loss": 2.5, "mfu": None, "drop_rates": {"en-de": 0.25}})
    tracker.log({"step": 10, "loss": 2.0, "mfu": 0.5, "load": [[0.5], [1.5]], "expert_loads": {"en-de": [3]}})
    measured = {"task": "en-de", "testset": "dev", "metric": "loss", "signature": "nats/token"}
    tracker.evaluate([Eval(step=10, tokens=1, flops=1, value=1.5, **measured)])
    tracker.close()
    assert read(tmp_path) == {
        "train/loss": [(5, 2.5), (10, 2.0)],
        "train/drop_rates/en-de": [(5, 0.25)],
        "train/mfu": [(10, 0.5)],
        "train/load/0/0": [(10, 0.5)],
        "train/load/1/0": [(10, 1.5)],
        "loss/dev/en-de": [(10, 1.5)],
    }


def test_a_resumed_run_goes_on_as_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    for resumed_at, steps in ((0, (5, 10, 15)), (7, (10, 15, 20))):
        # Its files have, and are read by, the second they were made in.
        monkeypatch.setattr("time.time", lambda second=1_700_000_000 + resumed_at: float(second))
        tracker = TensorBoard(tmp_path, step=resumed_at)
        for step in steps:
            tracker.log({"step": step, "loss": float(step + resumed_at)})
        tracker.close()
    # A later value of a step takes the place of an earlier one where it is drawn.
    assert dict(read(tmp_path)["train/loss"]) == {5: 5.0, 10: 17.0, 15: 22.0, 20: 27.0}


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(RunError, match=r'trackers = \["tensorboard"\] needs .*mnmt-model\[tensorboard\]'):
        check_tensorboard()
