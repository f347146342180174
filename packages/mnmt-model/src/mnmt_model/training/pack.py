"""Training several runs of one size, as one program where that is faster."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import ExitStack
from pathlib import Path

from mnmt_data.store import open_prepared
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints, step_of
from mnmt_model.distributed.world import World, join_world
from mnmt_model.errors import MachineError, RunError
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN, read_run
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.pack_choice import compile_program, faster_program
from mnmt_model.training.packed_models import PackedModels, has_compiler
from mnmt_model.training.run import OpenRun, open_run, train_to_end
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import new_state
from mnmt_model.training.trainer import Trainer
from mnmt_model.training.watcher import Watcher

UNPACKED = ("accumulation", "activation_checkpointing", "compile")
"""Settings of `[train]` that a pack takes at their defaults alone."""
Program = tuple[tuple[str, ...], str]
"""Names of the runs of a pack, and the backend of `torch.compile`."""


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


def recorded_pack(folder: Path) -> tuple[str, ...]:
    """Return the runs that the one in `folder` is trained with as one program, itself included.

    It is the run's own name if the run is trained alone, and nothing as long as neither is decided.
    """
    if not (folder / RUN).exists():
        return ()
    record = read_run(folder)
    return tuple(record.pack or ()) or ((folder.name,) if has_begun(folder) else ())


def has_begun(folder: Path) -> bool:
    """Return whether the run in `folder` has a checkpoint of steps of its own to continue from."""
    if not (folder / RUN).exists() or not (checkpoints := find_checkpoints(folder / CHECKPOINTS)):
        return False
    branch = read_run(folder).branch
    return branch is None or step_of(checkpoints[-1]) > branch["step"]


def train_pack(
    runs: Sequence[RunConfig],
    folders: Sequence[Path],
    *,
    watchers: Sequence[Sequence[Watcher]] = (),
    backend: str = "inductor",
) -> bool:
    """Train runs to their ends, each from its newest checkpoint, as one program; or give them back.

    Runs that have begun as one program go on so. Otherwise the setting `pack` decides, or a measurement on
    this machine. Where it does not pay, run.json of each says that it is to be trained alone, and that is
    left to the caller. Each run has the record and the checkpoints that it would have alone. One that fails
    is recorded as failed, and the others go on.

    Args:
        runs: The runs, which differ in mixture and seed; also those of the pack that have ended.
        folders: Their folders, which are made if they are missing.
        watchers: Are called while the runs are trained; a sequence for each run.
        backend: Of `torch.compile`; runs that have begun as one program keep theirs.

    Returns:
        Whether the runs were trained.

    Raises:
        RunError: If the runs cannot be trained as one program, if a folder holds another run, or if another
            process trains one.
        MachineError: If they were begun as a compiled program, and no compiler is here.
        Interrupted: If SIGTERM, SIGINT or SIGUSR1 has come; each run that has begun then has a checkpoint.
    """
    names = [run.name for run in runs]
    if (reason := why_apart(runs)) is not None:
        raise RunError(f"{', '.join(names)}: cannot be one pack, since {reason}")
    data = open_prepared(runs[0].data)
    with Interruption() as interruption, join_world() as world, ExitStack() as stack:
        if world.size > 1:
            raise RunError(f"{', '.join(names)}: one process trains a pack, but there are {world.size}")
        packs = {_recorded_program(folder) for folder in folders if has_begun(folder)}
        _check_compiler(tuple(names), packs, world)
        opened = [
            stack.enter_context(open_run(run, folder, data, world))
            for run, folder in zip(runs, folders, strict=True)
        ]
        states = []
        for run, each, more in zip(runs, opened, watchers or [()] * len(runs), strict=True):
            callbacks = [*each.watchers, *more]
            states.append(new_state(run, each.folder, data, world, callbacks, products=each.products)[0])
        with interruption.at_once():
            program = _program(states, packs, backend)
        if program is None:
            _give_back(states, opened)
            return False
        for each in opened:
            each.set_pack(names, backend=program.backend)
        train_to_end(Trainer(states, program), opened, interruption)
    return True


def _give_back(states: Sequence[RunState], opened: Sequence[OpenRun]) -> None:
    """Close runs, and record that they are to be trained alone."""
    for state, run in zip(states, opened, strict=True):
        state.close()
        run.give_back()


def _recorded_program(folder: Path) -> Program:
    """Return the program of the run in `folder`, which has begun; older records do not name the backend."""
    return recorded_pack(folder), read_run(folder).pack_backend or "inductor"


def _check_compiler(names: tuple[str, ...], packs: Set[Program], world: World) -> None:
    """Check that runs that were begun as a compiled program can go on so: other bits would come out.

    Raises:
        MachineError: If no compiler is here.
    """
    is_compiled = len(packs) == 1 and all(each == names and backend != "eager" for each, backend in packs)
    if is_compiled and not has_compiler(world.device):
        raise MachineError(
            f"{', '.join(names)}: were begun as a compiled program, but no compiler is here; install one "
            "(C++ on a CPU, Triton on a GPU), or train each alone with `mnmt-model train`"
        )


def _program(states: Sequence[RunState], packs: Set[Program], backend: str) -> PackedModels | None:
    """Return the program of the runs; None if they are to be trained alone.

    Args:
        states: The runs.
        packs: The programs as which those of them that have begun were trained.
        backend: Of `torch.compile`, for runs that have not begun.
    """
    setting, compiles = states[0].config.pack, has_compiler(states[0].world.device)
    names = tuple(state.run.name for state in states)
    recorded_names, recorded_backend = next(iter(packs)) if len(packs) == 1 else ((), "")
    if recorded_names == names:
        backend = recorded_backend
    elif packs or setting == 1 or (setting == 0 and (len(states) == 1 or not compiles)):
        return None
    elif setting == 0:
        return faster_program(states)
    program = PackedModels(states, backend=backend if compiles else "eager")
    if program.backend != "eager" and not all(state.is_over for state in states):
        compile_program(program)
    return program
