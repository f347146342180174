"""Whether runs are trained faster as one program than one after the other, measured on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mnmt_data.store import write_json
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.training.packed_models import PackedModels
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import SingleModel
from mnmt_model.training.trainer import Engine
from mnmt_model.transformer.products import cache_file, machine

STEPS = 4
"""Steps of each kind that are measured."""
TRIAL_SECONDS = 120.0
"""A program is not tried where it could save less: about twice the time that its compilation takes."""
BEST_SHARE = 0.4
"""Share of the time of single models that a program takes at best."""


@dataclass(frozen=True, kw_only=True)
class PackTimes:
    """Seconds that a machine takes for the gradients of a step."""

    alone: float
    """Of all models, one after the other."""
    packed: float
    """Of all models as one program."""
    compilation: float
    """Until the program's first step was done."""

    def saves(self, steps: int) -> float:
        """Return the seconds that the program saves in so many steps, its compilation included."""
        return (self.alone - self.packed) * steps - self.compilation


def faster_program(runs: Sequence[RunState]) -> PackedModels | None:
    """Return the program of these runs if it saves more time than its compilation takes; None if not.

    A machine measures it once, and stores it in the user's cache folder. Weights stay as they are.
    """
    steps = max(run.config.steps - run.progress.step for run in runs)
    like = (runs[0].run, runs[0].model.vocab_size, len(runs))
    if times := stored_times(*like):
        return PackedModels(runs) if times.saves(steps) > 0 else None
    for run in runs:
        run.model.train()
    alone = len(runs) * _seconds(SingleModel(runs[0], runs[0].model), 1, first=1)
    if alone * steps * (1 - BEST_SHARE) < TRIAL_SECONDS:
        return None
    program = PackedModels(runs)
    start = time.perf_counter()
    _seconds(program, len(runs), first=1, steps=1)
    compilation = time.perf_counter() - start
    packed = _seconds(program, len(runs), first=2)
    alone = len(runs) * _seconds(SingleModel(runs[0], runs[0].model), 1, first=2 + STEPS)
    times = PackTimes(alone=alone, packed=packed, compilation=compilation)
    _store(_key(*like), times)
    return program if times.saves(steps) > 0 else None


def stored_times(run: RunConfig, vocab_size: int, number: int) -> PackTimes | None:
    """Return what this machine has measured of so many runs like this one; None if it has not."""
    try:
        return PackTimes(**_read()[machine()][_key(run, vocab_size, number)])
    except (KeyError, TypeError):
        return None


def _seconds(engine: Engine, models: int, *, first: int, steps: int = STEPS) -> float:
    """Return the seconds that the gradients of a step take, the shortest of several, and drop them."""
    seconds = []
    for step in range(first, first + steps):
        start = time.perf_counter()
        engine.gradients(step)
        engine.clip()
        seconds.append(time.perf_counter() - start)
        engine.update([False] * models)
    return min(seconds)


def _key(run: RunConfig, vocab_size: int, number: int) -> str:
    """Return what the times depend on."""
    names = ("batch_tokens", "dropout", "precision", "label_smoothing", "z_loss")
    settings = {**vars(run.model.resolved()), **{name: getattr(run.train, name) for name in names}}
    return f"{number} models, vocabulary {vocab_size}, {json.dumps(settings, sort_keys=True)}"


def _file() -> Path:
    return cache_file().with_name("packs.json")


def _read() -> dict[str, dict[str, Any]]:
    try:
        stored = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _store(key: str, times: PackTimes) -> None:
    """Add times to the file; a cache that cannot be written costs a measurement, and nothing else."""
    stored = _read()
    stored.setdefault(machine(), {})[key] = asdict(times)
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_json(_file(), stored)
    except OSError:
        return
