"""Whether runs are trained faster as one program than one after the other, measured on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mnmt_data.store import file_lock, write_json
from mnmt_model.errors import one_line
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.training.packed_models import PackedModels
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import SingleModel
from mnmt_model.training.trainer import Engine
from mnmt_model.training.watcher import announce
from mnmt_model.transformer.machine import cache_folder, machine

TURNS = 4
"""Steps of each kind that are measured; the shortest counts."""
COMPILE_SECONDS = 120.0
"""What a compilation takes, until this machine has measured one."""
LEAST_GAIN = 0.1
"""Share of the time of single models that a program must save: updates of weights are not measured."""
MAX_LOSS = 0.05
"""Share of the runs' time that may be lost by trying a program that turns out to be slow."""
LOCK_SECONDS = 20
"""Time to wait for other processes that write; then these times are not stored."""


@dataclass(frozen=True, kw_only=True)
class PackTimes:
    """Seconds that a machine takes for the gradients of a step of all models of a pack."""

    alone: float
    """One model after the other."""
    stacked: float | None = None
    """Stacked, without compilation; None if that was not measured."""
    packed: float | None = None
    """As a compiled program; None if none was tried."""
    compilation: float | None = None
    """Until the first step of a program is done; None if none was tried."""

    def may_pay(self, steps: int, *, compilation: float) -> bool:
        """Return whether a program for so many steps could save time if its steps took none."""
        return self.alone * steps > compilation

    def pays(self, steps: int, *, compilation: float) -> bool:
        """Return whether to compile a program for so many steps.

        One that was measured must save more than its compilation takes. Another is tried where little can be
        lost: its steps take at most the time of stacked ones, or else models are trained alone after all.

        Args:
            steps: Steps of each model.
            compilation: Seconds that a compilation takes, where none was measured.
        """
        if self.packed is not None and self.compilation is not None:
            return self.saved * steps > self.compilation
        if self.stacked is None:
            return False
        saved = max(0.0, self.alone - self.stacked)
        return (saved + MAX_LOSS * self.alone) * steps >= compilation

    @property
    def saved(self) -> float:
        """Seconds that a step of the program saves, those left out that it must save at least."""
        return 0.0 if self.packed is None else (1 - LEAST_GAIN) * self.alone - self.packed

    def seconds(self, steps: int) -> float | None:
        """Return the seconds of so many steps as one program; None unless it is known to pay."""
        if self.packed is None or self.compilation is None or not self.pays(steps, compilation=0.0):
            return None
        return self.packed * steps + self.compilation


def faster_program(runs: Sequence[RunState]) -> PackedModels | None:
    """Return the compiled program of these runs if it saves time; None if they are trained faster alone.

    A machine measures it once, and stores it in the user's cache folder. Weights stay as they are.
    """
    steps = max(run.config.steps - run.progress.step for run in runs)
    key = _key(runs[0].run, runs[0].model.vocab_size, len(runs))
    times, compilation = _read().get(key), compile_seconds()
    for run in runs:
        run.model.train()
    if times is None or (times.stacked is None and times.may_pay(steps, compilation=compilation)):
        tell(runs, f"measuring whether {len(runs)} models are faster as one program")
        times = _measure(runs, steps, compilation)
        _store(key, times)
    if not times.pays(steps, compilation=compilation):
        return None
    program = PackedModels(runs)
    if (seconds := _compile(program)) is None:
        return None
    if times.packed is None:
        times = _measure_program(program, times, seconds)
        _store(key, times)
    return program if times.saved > 0 else None


def may_be_faster(run: RunConfig, vocab_size: int, number: int) -> bool:
    """Return whether a program of so many runs like this one may be faster, as far as this machine knows."""
    times, compilation = stored_times(run, vocab_size, number), compile_seconds()
    if times is None:
        return True
    unknown = times.stacked is None and times.may_pay(run.steps, compilation=compilation)
    return unknown or times.pays(run.steps, compilation=compilation)


def stored_times(run: RunConfig, vocab_size: int, number: int) -> PackTimes | None:
    """Return what this machine has measured of so many runs like this one; None if it has not."""
    return _read().get(_key(run, vocab_size, number))


def compile_seconds() -> float:
    """Return what a compilation takes: the longest that this machine has measured, or a rough guess."""
    return max([each.compilation for each in _read().values() if each.compilation], default=COMPILE_SECONDS)


def compile_program(program: PackedModels) -> float:
    """Compile a program, as its next step would, and say so; return the seconds that it took."""
    number, since = len(program.runs), time.perf_counter()
    tell(program.runs, f"compiling the program of {number} models, about {compile_seconds():.0f} s")
    program.gradients(_next_step(program.runs))
    program.drop_gradients()
    seconds = time.perf_counter() - since
    tell(program.runs, f"compiled the program of {number} models in {seconds:.0f} s")
    return seconds


def tell(runs: Sequence[RunState], phase: str) -> None:
    """Tell the watchers of all runs what is done before the first step."""
    for run in runs:
        announce(run.watchers, phase)


def _measure(runs: Sequence[RunState], steps: int, compilation: float) -> PackTimes:
    """Measure single models and, if a program may pay, the same models stacked."""
    single = SingleModel(runs[0], runs[0].model)
    (alone,) = _seconds([single], _next_step(runs))
    times = PackTimes(alone=alone * len(runs))
    if not times.may_pay(steps, compilation=compilation):
        return times
    alone, stacked = _seconds([single, PackedModels(runs, backend="eager")], _next_step(runs))
    return PackTimes(alone=alone * len(runs), stacked=stacked)


def _compile(program: PackedModels) -> float | None:
    """Compile a program; return the seconds that it took, or None if it cannot be compiled."""
    try:
        return compile_program(program)
    except Exception as error:  # Whatever a compiler lacks, the runs can be trained alone.
        tell(program.runs, f"cannot compile the program: {one_line(error)}")
        return None


def _measure_program(program: PackedModels, times: PackTimes, compilation: float) -> PackTimes:
    """Measure a compiled program beside a single model."""
    runs = program.runs
    single = SingleModel(runs[0], runs[0].model)
    alone, packed = _seconds([single, program], _next_step(runs))
    alone *= len(runs)
    tell(runs, f"as one program, {len(runs)} models are {alone / packed:.1f} times as fast as alone")
    return PackTimes(alone=alone, stacked=times.stacked, packed=packed, compilation=compilation)


def _seconds(engines: Sequence[Engine], first: int) -> list[float]:
    """Return the seconds that a step of each engine takes, which take turns; the first turn warms up.

    Args:
        engines: Compute gradients, which are dropped.
        first: The first step.
    """
    seconds: list[list[float]] = [[] for _ in engines]
    for step in range(first, first + TURNS + 1):
        for engine, times in zip(engines, seconds, strict=True):
            start = time.perf_counter()
            engine.gradients(step)
            number = len(engine.clip())
            times.append(time.perf_counter() - start)
            engine.update([False] * number)
    return [min(times[1:]) for times in seconds]


def _next_step(runs: Sequence[RunState]) -> int:
    """Return the first step that a run has before it."""
    return 1 + min(run.progress.step for run in runs if not run.is_over)


def _key(run: RunConfig, vocab_size: int, number: int) -> str:
    """Return what the times depend on, beside the machine."""
    names = ("batch_tokens", "dropout", "precision", "label_smoothing", "z_loss")
    settings = {**vars(run.model.resolved()), **{name: getattr(run.train, name) for name in names}}
    return f"{number} models, vocabulary {vocab_size}, {json.dumps(settings, sort_keys=True)}"


def _file() -> Path:
    return cache_folder() / "packs.json"


def _machine() -> str:
    """Return the machine, and the version of this package, which makes single models faster too."""
    return f"{machine()}, mnmt-model {version('mnmt-model')}"


def _read() -> dict[str, PackTimes]:
    """Return the times that this machine has measured."""
    try:
        return {key: PackTimes(**times) for key, times in _read_file()[_machine()].items()}
    except (KeyError, TypeError, AttributeError):
        return {}


def _read_file() -> dict[str, Any]:
    try:
        stored = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _store(key: str, times: PackTimes) -> None:
    """Add times to the file; a cache that cannot be written costs a measurement, and nothing else."""
    path = _file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.with_suffix(".lock"), name=path, error=TimeoutError, seconds=LOCK_SECONDS):
            stored = _read_file()
            stored.setdefault(_machine(), {})[key] = asdict(times)
            write_json(path, stored)
    except OSError:
        return
