"""`mnmt-model check-locks`: whether machines may share a folder of runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_model.errors import RunError

if TYPE_CHECKING:
    from mnmt_model.sweep.lock_trial import LockTrial

SAY_EVERY = 10
"""Seconds between two lines while other machines are missing."""


def check_locks(
    folder: Path,
    *,
    nodes: int = 2,
    processes: Annotated[int, Parameter(("--processes", "-p"))] = 4,
    seconds: float = 20.0,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> int:
    """Try whether sweeps on several machines may share a folder: give the same command on each of them.

    Processes on all machines claim items as sweeps claim runs. The exit status is 1 if one was claimed twice.

    Args:
        folder: A folder that all machines see, such as `results`.
        nodes: Machines that take part, this one included.
        processes: Processes on each machine.
        seconds: How long they go on, once all machines are there.
        as_json: Print JSON.
    """
    from mnmt_model.sweep.lock_trial import try_locks

    for name, number in (("--nodes", nodes), ("--processes", processes), ("--seconds", seconds)):
        if number < 1:
            raise RunError(f"{name} must be at least 1, but is {number:g}")
    if not folder.is_dir():
        raise RunError(f"{folder}: is no folder; give one that all machines see")
    print(f"{processes} processes of this machine claim items for {seconds:g} s", file=sys.stderr, flush=True)
    waited = 0

    def wait(missing: int) -> None:
        nonlocal waited
        if waited % SAY_EVERY == 0:
            others = "1 more machine" if missing == 1 else f"{missing} more machines"
            print(f"waiting for {others}: give the same command there", file=sys.stderr, flush=True)
        waited += 1

    trial = try_locks(folder, nodes=nodes, processes=processes, seconds=seconds, on_wait=wait)
    print(json.dumps(asdict(trial) | {"is_safe": trial.is_safe}) if as_json else verdict(trial, folder))
    return int(not trial.is_safe)


def verdict(trial: LockTrial, folder: Path) -> str:
    """Return what a trial says about a folder, in one line."""
    who = f"{trial.processes} processes on {len(trial.machines)} machines"
    if trial.held_twice:
        return (
            f"{folder}: its locks do not hold: {trial.held_twice:,} items were held by two of {who} at once; "
            "train with one sweep, or mount it with locks (NFS without `nolock`, Lustre with `flock`)"
        )
    if trial.claimed_again:
        return (
            f"{folder}: shows old states: {trial.claimed_again:,} of {trial.items:,} items were claimed "
            f"again after their end by {who}; train with one sweep, or mount it with `lookupcache=none`"
        )
    if len(trial.machines) == 1:
        return f"{folder}: its locks hold on this machine; --nodes 2 tries them between machines"
    return (
        f"{folder}: its locks hold: {who} claimed {trial.items:,} items, each once, "
        f"and were refused {trial.refusals_between:,} times while another machine held one, "
        f"{trial.refusals_within:,} times while another process of theirs did"
    )
