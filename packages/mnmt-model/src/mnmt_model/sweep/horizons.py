"""The runs of shorter horizons: branches that leave a constant-rate trunk for a cool-down of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mnmt_model.runs.run_config import Branch, RunConfig


def with_branches(run: RunConfig) -> Iterator[RunConfig]:
    """Yield a run, its own branches after it: one for each of its horizons but the last.

    A branch is trained from a checkpoint of its trunk, and then as an ordinary run of its length. Its
    cool-down is as long, in proportion, as the trunk's (Hägele et al. 2024, "Scaling laws and compute-optimal
    training beyond fixed training durations").
    """
    yield run
    for steps in run.train.horizons[:-1]:
        train = run.train.at_horizon(steps)
        branch = Branch(run=run.name, step=steps - train.cooldown_steps)
        yield replace(run, name=f"{run.name}_h{steps}", train=train, branch=branch)


def is_ready(run: RunConfig, folder: Path) -> bool:
    """Return whether a run can start: it is no branch, or its trunk has reached the step where it leaves.

    Args:
        run: The run.
        folder: Folder of all run records.
    """
    if run.branch is None:
        return True
    from mnmt_model.checkpoints import CHECKPOINTS, checkpoint_name

    branch, trunk = (folder / name / CHECKPOINTS for name in (run.name, run.branch.run))
    return branch.is_dir() or (trunk / checkpoint_name(run.branch.step)).is_dir()
