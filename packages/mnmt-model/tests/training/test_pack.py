"""Packs as runs: records, checkpoints, resuming and ending."""

import dataclasses
import json
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mnmt_data.store import file_lock
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.errors import Interrupted, MachineError, RunInUseError
from mnmt_model.runs.run_record import LOCK, read_evals, read_run
from mnmt_model.sweep.horizons import with_branches
from mnmt_model.sweep.run_states import run_state
from mnmt_model.training import pack
from mnmt_model.training.pack import recorded_pack, train_pack, why_apart
from mnmt_model.training.packed_models import PackedModels
from mnmt_model.training.watcher import Watcher

TIMED = ("tokens_per_second", "mfu", "data_wait")


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


class KillAt(Watcher):
    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            raise Killed


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    """Two runs of one size, with dropout, that are always a pack."""
    return [with_train(run, pack=2) for run in run_configs(read_study(study_file), results / "data")[:2]]


@pytest.fixture(scope="module")
def whole(runs: list[RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack that was trained without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    train_runs(runs, folder)
    return folder


def with_train(run: RunConfig, **changes: object) -> RunConfig:
    return dataclasses.replace(run, train=dataclasses.replace(run.train, **changes))  # type: ignore[arg-type]


def train_runs(
    runs: Sequence[RunConfig], folder: Path, *, watchers: Sequence[Sequence[Watcher]] = ()
) -> bool:
    return train_pack(runs, [folder / run.name for run in runs], watchers=watchers, backend="eager")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    checkpoint = find_checkpoints(folder / "checkpoints")[-1]
    return load_file(checkpoint / "model.safetensors") | load_file(checkpoint / "optimizer.safetensors")


def logged(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMED} for line in lines]


def assert_same(some: Path, other: Path) -> None:
    expected, actual = weights(some), weights(other)
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
    assert (logged(some), read_evals(some)) == (logged(other), read_evals(other))


@pytest.mark.parametrize(("step", "member"), [(1, 0), (7, 1), (10, 0)])
def test_a_killed_pack_goes_on_as_if_it_had_not_been(
    runs: list[RunConfig], whole: Path, tmp_path: Path, step: int, member: int
) -> None:
    watchers: list[list[Watcher]] = [[], []]
    watchers[member] = [KillAt(step)]
    with pytest.raises(Killed):
        train_runs(runs, tmp_path, watchers=watchers)
    train_runs(runs, tmp_path)
    for run in runs:
        assert_same(whole / run.name, tmp_path / run.name)


def test_branches_of_a_pack_are_a_pack_that_goes_on_as_if_never_killed(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    trunks = [with_train(run, horizons=(8, 12), cooldown_steps=3) for run in runs]
    branches = [branch for trunk in trunks for branch in list(with_branches(trunk))[1:]]
    train_runs(trunks, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    train_runs(branches, tmp_path / "whole")
    with pytest.raises(Killed):
        train_runs(branches, tmp_path / "killed", watchers=[[], [KillAt(7)]])
    names = tuple(branch.name for branch in branches)
    assert [recorded_pack(tmp_path / "killed" / name) for name in names] == [names] * 2
    train_runs(branches, tmp_path / "killed")
    for name in names:
        assert_same(tmp_path / "whole" / name, tmp_path / "killed" / name)
        assert read_evals(tmp_path / "killed" / name)[-1].annealed


def test_records_name_the_pack(runs: list[RunConfig], whole: Path) -> None:
    for run in runs:
        record = read_run(whole / run.name)
        assert (record.status, record.pack) == ("finished", [each.name for each in runs])
        assert record.pack_backend == "eager"


def test_a_compiled_pack_is_refused_without_a_compiler_and_a_stacked_one_stays_so(
    runs: list[RunConfig], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Killed):
        train_runs(runs, tmp_path / "stacked", watchers=[[], [KillAt(7)]])
    shutil.copytree(tmp_path / "stacked", tmp_path / "compiled")
    folders = [tmp_path / "compiled" / run.name for run in runs]
    for folder in folders:
        record = json.loads((folder / "run.json").read_text())
        del record["pack_backend"]  # as in older records
        (folder / "run.json").write_text(json.dumps(record))
    monkeypatch.setattr(pack, "has_compiler", lambda device: False)
    before = [read_run(folder) for folder in folders]
    with pytest.raises(MachineError, match="no compiler is here; install one"):
        train_pack(runs, folders)
    assert [read_run(folder) for folder in folders] == before
    monkeypatch.setattr(pack, "has_compiler", lambda device: True)
    train_pack(runs, [tmp_path / "stacked" / run.name for run in runs])
    for run in runs:
        assert_same(whole / run.name, tmp_path / "stacked" / run.name)


def test_a_member_goes_on_alone_and_a_run_in_a_pack(runs: list[RunConfig], tmp_path: Path) -> None:
    calm = [with_train(run, dropout=0.0) for run in runs]
    for run in calm:
        train(run, tmp_path / "alone" / run.name)
    with pytest.raises(Killed):
        train_runs(calm, tmp_path / "pack", watchers=[[], [KillAt(7)]])
    for run in calm:
        train(run, tmp_path / "pack" / run.name)
        record = read_run(tmp_path / "pack" / run.name)
        assert (record.status, record.pack) == ("finished", None)
        alone, packed = (weights(tmp_path / name / run.name) for name in ("alone", "pack"))
        for name, tensor in alone.items():
            torch.testing.assert_close(packed[name], tensor, rtol=1e-3, atol=1e-4)


def test_a_run_that_stops_early_leaves_the_others_to_train(runs: list[RunConfig], tmp_path: Path) -> None:
    stopping = [with_train(run, eval_every=2, early_stopping=1, steps=40) for run in runs]
    first = dataclasses.replace(stopping[0])
    train_runs([first, stopping[1]], tmp_path)
    for run in stopping:
        record = read_run(tmp_path / run.name)
        last = max(measurement.step for measurement in read_evals(tmp_path / run.name))
        assert record.status == "finished"
        assert (record.stopped is None) == (last == 40)


def test_a_signal_ends_compilation_at_once(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_until_a_signal_comes(program: PackedModels) -> None:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError

    monkeypatch.setattr(pack, "compile_program", compile_until_a_signal_comes)
    with pytest.raises(Interrupted, match="SIGTERM"):
        train_pack(runs, [tmp_path / run.name for run in runs])
    assert [run_state(run, tmp_path / run.name).state for run in runs] == ["interrupted", "interrupted"]


def test_runs_that_cannot_be_one_program_say_why(runs: list[RunConfig], tmp_path: Path) -> None:
    other = with_train(runs[1], batch_tokens=400)
    assert why_apart([runs[0], other]) == "they differ in more than mixture and seed"
    assert why_apart([with_train(run, accumulation=2) for run in runs]) == "`accumulation` is set"
    assert why_apart(runs) is None
    with pytest.raises(RunError, match="cannot be one pack, since they differ in more than mixture"):
        train_runs([runs[0], other], tmp_path)


def test_a_pack_that_loses_the_race_for_a_run_lets_the_others_go(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    first, second = runs
    (tmp_path / second.name).mkdir()
    with file_lock(tmp_path / second.name / LOCK, name=second.name):  # another plan trains it alone
        with pytest.raises(RunInUseError, match=second.name):
            train_runs(runs, tmp_path)
        state = run_state(first, tmp_path / first.name)
        assert (state.state, state.error, state.attempts) == ("waiting", None, 1)
        train(first, tmp_path / first.name)
    assert read_run(tmp_path / first.name).status == "finished"
    assert not (tmp_path / second.name / "run.json").exists()


def test_runs_that_no_program_trains_faster_are_given_back(runs: list[RunConfig], tmp_path: Path) -> None:
    short = [with_train(run, pack=0) for run in runs]
    assert not train_runs(short, tmp_path)
    assert [run_state(run, tmp_path / run.name).state for run in short] == ["waiting", "waiting"]
    for run in short:
        train(run, tmp_path / run.name)
        record = read_run(tmp_path / run.name)
        assert (record.status, record.pack, record.attempts) == ("finished", [run.name], 1)
        train(run, tmp_path / "alone" / run.name)
        assert_same(tmp_path / "alone" / run.name, tmp_path / run.name)
