"""Trackers keep what a run measures, read back by their own programs; nothing leaves the machine."""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from fake_training import fake_runs

from mnmt_model import RunError
from mnmt_model.runs import new_record
from mnmt_model.runs.run_record import Eval, write_run
from mnmt_model.training.trackers import TRACKERS, Tracker, Trackers, check_trackers

Points = dict[str, list[tuple[int, float]]]
"""{tag: (step, value) of each point}."""

NAMES = pytest.mark.parametrize("name", sorted(TRACKERS))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of a run about to start; trackers write beside it."""
    for name, value in {
        "WANDB_MODE": "offline",
        "MLFLOW_TRACKING_URI": (tmp_path / "mlruns").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }.items():
        monkeypatch.setenv(name, value)
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()  # it keeps the environment of an earlier test
    (run,) = fake_runs(1)
    folder = tmp_path / "run"
    folder.mkdir()
    write_run(folder, new_record(run, folder, vocab_size=10, data=None))
    return folder


def open_tracker(name: str, folder: Path, step: int = 0) -> Trackers:
    pytest.importorskip(name)
    return Trackers([name], folder, step=step)


def read_tensorboard(folder: Path) -> Points:
    from tensorboard.backend.event_processing import event_accumulator

    events = event_accumulator.EventAccumulator(
        str(folder / "tensorboard"), purge_orphaned_data=True
    ).Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.scalars.Keys()}


def close(tracker: Any, folder: Path) -> None:
    """Close a tracker, and wait for what W&B's own process stores after that: at last, that the run ended."""
    tracker.close()
    for _ in range(200):
        if all(records and records[-1].HasField("exit") for records in wandb_records(folder)):
            return
        time.sleep(0.05)
    raise TimeoutError("W&B has not stored the end of the run")


def wandb_records(folder: Path) -> list[list[Any]]:
    """Read what W&B has stored offline: the records of each process, oldest first."""
    paths = sorted(folder.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns)
    if not paths:
        return []
    from wandb.proto.wandb_internal_pb2 import Record

    return [[Record.FromString(data) for data in leveldb_records(path.read_bytes())] for path in paths]


def leveldb_records(content: bytes, *, block: int = 32768) -> Iterator[bytes]:
    """Yield the records of a log of LevelDB, after 7 bytes of W&B's own.

    A block has chunks of a checksum (4 bytes), a length (2) and a kind: 1 a whole record, 4 the last part.
    """
    place, record = 7, b""
    while place < len(content):
        if block - place % block < 7:
            place += block - place % block
        length, kind = struct.unpack_from("<4xHB", content, place)
        record += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def read_wandb(folder: Path) -> Points:
    points: Points = {}
    for record in chain(*wandb_records(folder)):
        values = {
            item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item
        }
        for tag in values.keys() - {"step"}:
            if not tag.startswith("_"):
                points.setdefault(tag, []).append((values["step"], values[tag]))
    return points


def mlflow_runs(folder: Path) -> list[Any]:
    import mlflow

    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("fake")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


def read_mlflow(folder: Path) -> Points:
    import mlflow

    (run,) = mlflow_runs(folder)
    history = mlflow.MlflowClient().get_metric_history
    # MLflow orders points by their millisecond, which two may share.
    return {
        tag: sorted((each.step, each.value) for each in history(run.info.run_id, tag))
        for tag in run.data.metrics
    }


READ = {"tensorboard": read_tensorboard, "wandb": read_wandb, "mlflow": read_mlflow}


def measured(step: int, value: float) -> Eval:
    return Eval(
        step=step,
        tokens=1,
        flops=1,
        task="en-de",
        testset="dev",
        metric="loss",
        value=value,
        signature="nats/token",
    )


@NAMES
def test_lines_and_measurements_become_points(name: str, folder: Path) -> None:
    tracker = open_tracker(name, folder)
    tracker.log({"step": 5, "loss": 2.5, "mfu": None, "drop_rates": {"en-de": 0.25}})
    tracker.log({"step": 10, "loss": 2.0, "mfu": 0.5, "load": [[0.5], [1.5]], "expert_loads": {"en-de": [3]}})
    tracker.evaluate([measured(10, 1.5)])
    close(tracker, folder)
    assert READ[name](folder) == {
        "train/loss": [(5, 2.5), (10, 2.0)],
        "train/drop_rates/en-de": [(5, 0.25)],
        "train/mfu": [(10, 0.5)],
        "train/load/0/0": [(10, 0.5)],
        "train/load/1/0": [(10, 1.5)],
        "loss/dev/en-de": [(10, 1.5)],
    }


@NAMES
def test_a_resumed_run_goes_on_as_the_same_one(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for resumed_at, steps in ((0, (5, 10, 15)), (7, (10, 15, 20))):
        if name == "tensorboard":  # Its files have, and are read by, the second they were made in.
            monkeypatch.setattr("time.time", lambda second=1_700_000_000 + resumed_at: float(second))
        tracker = open_tracker(name, folder, resumed_at)
        for step in steps:
            tracker.log({"step": step, "loss": float(step + resumed_at)})
        close(tracker, folder)
    points = READ[name](folder)["train/loss"]
    # A later value of a step takes the place of an earlier one where it is drawn.
    assert dict(points) == {5: 5.0, 10: 17.0, 15: 22.0, 20: 27.0}


@pytest.mark.parametrize("project", ["", "mine"])
def test_wandb_groups_the_runs_of_a_study_under_one_identity(
    project: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if project:
        monkeypatch.setenv("WANDB_PROJECT", project)
    for step in (0, 7):
        close(open_tracker("wandb", folder, step), folder)
    runs = [record.run for record in chain(*wandb_records(folder)) if record.HasField("run")]
    assert {(run.project, run.run_group) for run in runs} == {(project or "mnmt", "fake")}
    assert len({run.run_id for run in runs}) == 1


def test_mlflow_has_a_study_as_an_experiment_and_the_settings_as_parameters(folder: Path) -> None:
    try:
        tracker = open_tracker("mlflow", folder)
        raise RunError("the loss is nan")
    except RunError:
        tracker.close()
    (run,) = mlflow_runs(folder)
    assert run.info.status == "FAILED"
    assert run.data.params["seed"] == "1"
    assert '"learning_rate"' in run.data.params["train"]


def test_a_tracker_that_fails_stops_neither_the_run_nor_others_and_is_named_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[tuple[str, int]] = []

    class Recording(Tracker):
        name = "recording"

        @staticmethod
        def check() -> None: ...

        def __init__(self, folder: Path, *, step: int) -> None: ...

        def write(self, step: int, scalars: Any) -> None:
            calls.append((self.name, step))

        def close(self) -> None: ...

    class Broken(Recording):
        name = "broken"

        def write(self, step: int, scalars: Any) -> None:
            super().write(step, scalars)
            raise ConnectionError("no route to host")

    monkeypatch.setattr("mnmt_model.training.trackers.TRACKERS", {"broken": Broken, "recording": Recording})
    trackers = Trackers(["broken", "recording"], folder, step=0)
    trackers.log({"step": 5, "loss": 2.5})
    trackers.evaluate([measured(10, 1.5)])
    trackers.close()
    assert calls == [("broken", 5), ("recording", 5), ("recording", 10)]
    assert [record.getMessage() for record in caplog.records] == [
        "broken stopped recording, training goes on: no route to host"
    ]


@NAMES
def test_a_missing_package_names_the_extra(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard" if name == "tensorboard" else name, None)
    for start in (lambda: Trackers([name], folder, step=0), lambda: check_trackers([name])):
        with pytest.raises(RunError, match=rf'trackers = \["{name}"\] needs .*mnmt-model\[{name}\]'):
            start()


@NAMES
def test_a_tracker_within_reach_passes_the_check(name: str, folder: Path) -> None:
    pytest.importorskip(name)
    check_trackers([name])


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("wandb", {"WANDB_MODE": "online"}, "key"),
        ("mlflow", {"MLFLOW_TRACKING_URI": "http://localhost:9"}, "[Cc]onnection"),
    ],
)
def test_a_tracker_out_of_reach_is_refused_in_a_line(
    name: str, changes: dict[str, str], reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(name)
    for key, value in ({"HOME": str(folder), "WANDB_CONFIG_DIR": str(folder)} | changes).items():
        monkeypatch.setenv(key, value)
    with pytest.raises(RunError, match=rf"^{name} cannot record the run: .*{reason}"):
        check_trackers([name])
