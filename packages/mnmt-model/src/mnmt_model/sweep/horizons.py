"""Runs of shorter horizons: branches off a constant-rate trunk, each with a cool-down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mnmt_model.runs.run_config import Branch, RunConfig


def with_branches(run: RunConfig) -> Iterator[RunConfig]:
    """Yield a run and then its branches: one for each of its horizons except the last.

    A branch starts from a checkpoint of its trunk, and is trained like any run of its length. Its cool-down
    is proportional to the trunk's (Hägele et al. 2024, "Scaling laws and compute-optimal training beyond
    fixed training durations").
    """
    yield run
    for steps in run.train.horizons[:-1]:
        train = run.train.at_horizon(steps)
        branch = Branch(run=run.name, step=steps - train.cooldown_steps)
        yield replace(run, name=f"{run.name}_h{steps}", train=train, branch=branch)


def is_ready(run: RunConfig, folder: Path) -> bool:
    """Return whether a run is not a branch, or its trunk has reached the branch's first step.

    Args:
        run: The run.
        folder: Folder of all run records.
    """
    if run.branch is None:
        return True
    from mnmt_model.checkpoints import CHECKPOINTS, checkpoint_name

    branch, trunk = (folder / name / CHECKPOINTS for name in (run.name, run.branch.run))
    return branch.is_dir() or (trunk / checkpoint_name(run.branch.step)).is_dir()
