"""The choice between one program and single models, with given times."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs
from mnmt_model.distributed.world import World
from mnmt_model.training import pack_choice
from mnmt_model.training.pack_choice import MAX_LOSS, PackTimes, faster_program, may_be_faster
from mnmt_model.training.packed_models import PackedModels
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import SingleModel, new_state
from mnmt_model.training.watcher import Watcher

VOCAB = 64


class Phases(Watcher):
    def __init__(self) -> None:
        self.phases: list[str] = []

    def announce(self, phase: str) -> None:
        self.phases.append(phase)


@pytest.fixture
def runs(study_file: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """Two runs of one size, on a machine that has measured nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return list(run_configs(read_study(study_file), results / "data")[:2])


def states(runs: Sequence[RunConfig], folder: Path, *, steps: int, phases: Phases) -> list[RunState]:
    data = open_prepared(runs[0].data)
    longer = [dataclasses.replace(run, train=dataclasses.replace(run.train, steps=steps)) for run in runs]
    for run in runs:
        (folder / run.name).mkdir(exist_ok=True)
    return [new_state(run, folder / run.name, data, World(), [phases])[0] for run in longer]


def give_times(monkeypatch: pytest.MonkeyPatch, *, single: float, stacked: float, packed: float) -> list[str]:
    """Let the steps of engines take given seconds, and compilations 100; return what was measured."""
    measured: list[str] = []

    def seconds(engines: Sequence[Any], first: int) -> list[float]:
        assert first == 1
        times = []
        for engine in engines:
            name = "single" if isinstance(engine, SingleModel) else engine.name
            measured.append(name)
            times.append({"single": single, "stacked": stacked, "packed": packed}[name])
        return times

    def packed_models(runs: Sequence[RunState], *, backend: str = "inductor") -> PackedModels:
        program = PackedModels(runs, backend="eager")
        program.name = "stacked" if backend == "eager" else "packed"  # type: ignore[attr-defined]
        return program

    def compile_program(program: PackedModels) -> float:
        measured.append("compiled")
        return 100.0

    monkeypatch.setattr(pack_choice, "_seconds", seconds)
    monkeypatch.setattr(pack_choice, "PackedModels", packed_models)
    monkeypatch.setattr(pack_choice, "compile_program", compile_program)
    return measured


@pytest.mark.parametrize(
    ("steps", "times", "expected", "measured"),
    [
        # Two runs of 10,000 steps of 5 ms take no longer than a compilation.
        (10_000, {"single": 0.005, "stacked": 0.001, "packed": 0.001}, False, ["single"]),
        # 12 minutes, of which stacking alone saves nothing: a compilation could be a loss of a sixth.
        (36_000, {"single": 0.01, "stacked": 0.02, "packed": 0.001}, False, ["single", "single", "stacked"]),
        # 12 minutes, of which stacking alone saves 3.6: a program that is no faster saves those too.
        (36_000, {"single": 0.01, "stacked": 0.014, "packed": 0.008}, True, None),
        # An hour: a compilation is little, whatever comes of it.
        (180_000, {"single": 0.01, "stacked": 0.02, "packed": 0.008}, True, None),
        (180_000, {"single": 0.01, "stacked": 0.02, "packed": 0.021}, False, None),
    ],
)
def test_a_program_is_compiled_where_that_risks_little_and_kept_where_it_is_faster(
    runs: list[RunConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
    times: dict[str, float],
    expected: bool,
    measured: list[str] | None,
) -> None:
    log, phases = give_times(monkeypatch, **times), Phases()
    assert may_be_faster(runs[0], VOCAB, 2)
    program = faster_program(states(runs, tmp_path, steps=steps, phases=phases))
    assert (program is not None) == expected
    assert log == (measured or ["single", "single", "stacked", "compiled", "single", "packed"])
    log.clear()
    again = faster_program(states(runs, tmp_path, steps=steps, phases=phases))
    assert (again is not None) == expected
    assert log == (["compiled"] if expected else [])


def test_the_loss_of_a_trial_is_bounded() -> None:
    for alone in (0.01, 0.1, 1.0):
        for share in (0.5, 0.9, 1.0, 3.0):
            times = PackTimes(alone=alone, stacked=alone * share)
            for steps in (100, 1_000, 10_000, 100_000):
                if times.pays(steps, compilation=120.0):
                    worst = min(alone, alone * share) * steps + 120.0
                    assert worst <= (1 + MAX_LOSS) * alone * steps * (1 + 1e-9)


def test_measured_times_decide_by_the_steps_that_are_left() -> None:
    times = PackTimes(alone=0.08, stacked=0.07, packed=0.04, compilation=60.0)
    assert not times.pays(1_874, compilation=1.0)
    assert times.pays(1_877, compilation=1e9)
    assert (times.seconds(1_874), times.seconds(2_000)) == (None, 0.04 * 2_000 + 60.0)


def test_another_version_of_this_package_measures_anew(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = give_times(monkeypatch, single=0.01, stacked=0.02, packed=0.03)
    for version in ("1.0", "1.1"):
        monkeypatch.setattr(pack_choice, "version", lambda _, version=version: version)
        assert faster_program(states(runs, tmp_path, steps=180_000, phases=Phases())) is None
        assert "compiled" in log
        log.clear()
        assert faster_program(states(runs, tmp_path, steps=180_000, phases=Phases())) is None
        assert log == []


def test_a_compiler_that_fails_leaves_the_runs_to_be_trained_alone(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_times(monkeypatch, single=0.01, stacked=0.02, packed=0.001)
    phases = Phases()

    def compile_program(program: PackedModels) -> float:
        raise RuntimeError("no header\nPython.h")

    with monkeypatch.context() as broken:
        broken.setattr(pack_choice, "compile_program", compile_program)
        assert faster_program(states(runs, tmp_path, steps=180_000, phases=phases)) is None
        assert phases.phases[-1] == "cannot compile the program: no header Python.h"
    # A failure is not stored: it may have been a full disk, and tells nothing of the next.
    assert faster_program(states(runs, tmp_path, steps=180_000, phases=phases)) is not None
    with monkeypatch.context() as broken:
        broken.setattr(pack_choice, "compile_program", compile_program)
        # Now it is known to pay.
        assert faster_program(states(runs, tmp_path, steps=180_000, phases=phases)) is None


def test_what_takes_long_is_announced(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = Phases()
    program = PackedModels(states(runs, tmp_path, steps=12, phases=phases), backend="eager")
    before = {name: tensor.clone() for name, tensor in program.stack.items()}
    pack_choice.compile_program(program)
    assert all((before[name] == tensor).all() for name, tensor in program.stack.items())
    assert phases.phases[:2] == ["compiling the program of 2 models, about 120 s"] * 2
    assert phases.phases[-1].startswith("compiled the program of 2 models in ")
