"""Training several runs of one size, as one program where that is faster."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import ExitStack
from pathlib import Path

from mnmt_data.store import open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints
from mnmt_model.distributed.world import join_world
from mnmt_model.errors import RunError, one_line
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN, read_run
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.pack_choice import faster_program
from mnmt_model.training.packed_models import PackedModels, has_compiler
from mnmt_model.training.run import OpenRun, open_run, train_to_end
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import SingleModel, new_state
from mnmt_model.training.trainer import Trainer
from mnmt_model.training.watcher import Watcher

UNPACKED = ("accumulation", "activation_checkpointing", "compile")
"""Settings of `[train]` that a pack takes at their defaults alone."""


def program_key(run: RunConfig) -> str:
    """Return what the runs of a pack have in common: all but names, mixtures and seeds."""
    return repr((run.model, run.train, run.data, run.branch and run.branch.step))


def why_apart(runs: Sequence[RunConfig]) -> str | None:
    """Return why runs cannot be trained as one program; None if they can."""
    first = runs[0]
    if len({program_key(run) for run in runs}) > 1:
        return "they differ in more than mixture and seed"
    if first.model.num_experts:
        return "their models have experts"
    default = type(first.train)()
    setting = next((name for name in UNPACKED if getattr(first.train, name) != getattr(default, name)), None)
    return None if setting is None else f"`{setting}` is set"


def recorded_pack(folder: Path) -> Sequence[str]:
    """Return the runs that the one in `folder` has been trained with as one program; none if it has not."""
    return (read_run(folder).pack or ()) if has_begun(folder) else ()


def has_begun(folder: Path) -> bool:
    """Return whether the run in `folder` has a checkpoint to continue from."""
    return (folder / RUN).exists() and bool(find_checkpoints(folder / CHECKPOINTS))


def train_pack(
    runs: Sequence[RunConfig],
    folders: Sequence[Path],
    *,
    watchers: Sequence[Sequence[Watcher]] = (),
    backend: str = "inductor",
) -> None:
    """Train runs to their ends, each from its newest checkpoint, as one program where that is faster.

    Runs that have begun as one program go on so. Otherwise the setting `pack` decides, or a measurement on
    this machine; and where it does not pay they are trained one after the other. Each has the record and the
    checkpoints that it would have alone. One that fails is recorded as failed, and the others go on.

    Args:
        runs: The runs, which differ in mixture and seed; also those of the pack that have ended.
        folders: Their folders, which are made if they are missing.
        watchers: Are called while the runs are trained; a sequence for each run.
        backend: Of `torch.compile`.

    Raises:
        RunError: If the runs cannot be trained as one program, if a folder holds another run, or if another
            process trains one.
        Interrupted: If SIGTERM, SIGINT or SIGUSR1 has come; each run then has a checkpoint of its last step.
    """
    names = [run.name for run in runs]
    if (reason := why_apart(runs)) is not None:
        raise RunError(f"{', '.join(names)}: cannot be one pack, since {reason}")
    data = open_prepared(runs[0].data)
    with Interruption() as interruption, join_world() as world, ExitStack() as stack:
        if world.size > 1:
            raise RunError(f"{', '.join(names)}: one process trains a pack, but there are {world.size}")
        packs = {tuple(recorded_pack(folder)) for folder in folders if has_begun(folder)}
        opened = [
            stack.enter_context(open_run(run, folder, data, world))
            for run, folder in zip(runs, folders, strict=True)
        ]
        states = []
        for run, each, more in zip(runs, opened, watchers or [()] * len(runs), strict=True):
            callbacks = [*each.watchers, *more]
            states.append(new_state(run, each.folder, data, world, callbacks, products=each.products)[0])
        engine = _engine(states, packs, backend)
        if engine is None:
            _train_apart(states, opened, interruption)
            return
        for each in opened:
            each.set_pack(names)
        train_to_end(Trainer(states, engine), opened, interruption)


def _engine(states: Sequence[RunState], packs: Set[tuple[str, ...]], backend: str) -> PackedModels | None:
    """Return the program of the runs; None if they are trained apart.

    Args:
        states: The runs.
        packs: The packs as which those of them that have begun were trained.
        backend: Of `torch.compile`.
    """
    setting, compiles = states[0].config.pack, has_compiler(states[0].world.device)
    if packs == {tuple(state.run.name for state in states)} or (not packs and setting > 1):
        return PackedModels(states, backend=backend if compiles else "eager")
    if packs or setting == 1 or len(states) == 1 or not compiles:
        return None
    return faster_program(states)


def _train_apart(states: Sequence[RunState], opened: Sequence[OpenRun], interruption: Interruption) -> None:
    """Train runs one after the other."""
    for state, run in zip(states, opened, strict=True):
        if not run.is_finished:
            run.set_pack(None)
            state.restart_clock()
            try:
                train_to_end(Trainer([state], SingleModel(state, state.model)), [run], interruption)
            except RunError as error:
                run.end(status="failed", error=one_line(error))
