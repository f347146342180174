"""The states of a study's runs, from records and heartbeats, and an estimate of the time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mnmt_data.jobs.claim import is_alive, read_heartbeat
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints, step_of
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN, RunRecord, is_given_up, read_run
from mnmt_model.sweep.next_run import training_cost

State = Literal["finished", "running", "waiting", "interrupted", "dead", "failed"]
"""`dead`: the process ended without recording it; the next sweep resumes the run."""
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, kw_only=True)
class RunState:
    """The state of one run."""

    run: str
    state: State
    attempts: int
    """Attempts without a new checkpoint; 0 before the first."""
    error: str | None
    """Reason of a failure or an interruption."""
    step: int
    """Number of steps known to be done."""
    steps: int
    loss: float | None
    """Newest training loss of a run in training, nats per target token."""
    steps_per_second: float | None
    seconds_left: float | None
    wall_seconds: float | None
    """Seconds of training of a finished run."""
    cost: int
    """A number roughly proportional to its training time."""
    cost_left: float
    """`cost` of the remaining steps."""
    host: str | None
    """The machine that trains it."""
    pid: int | None
    """The process that trains it on that machine."""
    phase: str | None
    """Activity before the first step, such as compiling; None afterwards."""

    @property
    def has_ended(self) -> bool:
        """Whether it is finished or failed."""
        return self.state in ("finished", "failed")


def study_states(runs: Sequence[RunConfig], folder: Path) -> list[RunState]:
    """Return the states of the runs of a study.

    Args:
        runs: The runs.
        folder: Folder of the runs' folders.
    """
    return [run_state(run, folder / run.name) for run in runs]


def run_state(run: RunConfig, folder: Path) -> RunState:
    """Return the state of the run in `folder`."""
    record = read_run(folder) if (folder / RUN).exists() else None
    state = _state(record, folder)
    beat = read_heartbeat(folder) if record is not None and state != "finished" else None
    live = beat if state == "running" else None
    seconds_left = live.seconds_left if live else None
    step = live.step if live else _kept_steps(run, record, folder)
    return RunState(
        run=run.name,
        state=state,
        attempts=record.attempts if record else 0,
        error=record.error if record else None,
        step=step,
        steps=run.train.steps,
        loss=beat.loss if beat else None,
        steps_per_second=(run.train.steps - step) / seconds_left if seconds_left else None,
        seconds_left=seconds_left,
        wall_seconds=record.wall_seconds if record and state == "finished" else None,
        cost=training_cost(run),
        cost_left=training_cost(run) * min(1.0, (run.train.steps - step) / run.steps),
        host=live.host if live else None,
        pid=live.pid if live else None,
        phase=live.phase if live else None,
    )


def count_states(states: Sequence[RunState]) -> dict[State, int]:
    """Return the number of runs in each state that occurs."""
    counts = Counter(state.state for state in states)
    return {name: counts[name] for name in STATES if counts[name]}


def seconds_left(states: Sequence[RunState], *, jobs: int | None = None) -> float | None:
    """Estimate the seconds until the last run ends; None while no speed is known.

    The estimate is seconds per cost × remaining cost / runs at a time, and at least that of the slowest run.

    Args:
        states: The states of the runs.
        jobs: Runs at a time; by default the number of running ones.
    """
    running = [state for state in states if state.seconds_left is not None]
    ended = [state for state in states if state.wall_seconds]
    done = [(state.wall_seconds or 0.0, float(state.cost)) for state in ended]
    timed = done or [(state.seconds_left or 0.0, state.cost_left) for state in running]
    cost = sum(cost for _, cost in timed)
    left = [state for state in states if not state.has_ended]
    if not left or not cost:
        return 0.0 if not left else None
    at_a_time = max(1, min(jobs or len(running), len(left)))
    total = sum(seconds for seconds, _ in timed) / cost * sum(state.cost_left for state in left)
    return max([total / at_a_time, *(state.seconds_left or 0.0 for state in running)])


def _kept_steps(run: RunConfig, record: RunRecord | None, folder: Path) -> int:
    """Return the step at which a run would resume."""
    if record is not None and record.status == "finished":
        return run.train.steps
    checkpoints = find_checkpoints(folder / CHECKPOINTS)
    return step_of(checkpoints[-1]) if checkpoints else 0


def _state(record: RunRecord | None, folder: Path) -> State:
    if record is None:
        return "waiting"
    if record.status == "running":
        return "running" if is_alive(folder) else "dead"
    if record.status == "failed" and not is_given_up(record):
        return "interrupted"  # It is tried once more.
    return record.status
