"""A trial of a folder's locks: processes on several machines claim items as sweeps claim runs."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from mnmt_data.store import file_lock, read_json, write_json
from mnmt_model.errors import RunError, RunInUseError
from mnmt_model.runs.run_record import LOCK

TRIAL = "lock-trial"
"""Folder of a trial, in the folder that is tried."""
RECORD, HELD = "record.json", "held"
HOLD_SECONDS = 0.02
"""How long an item is held at most; a claim is worth nothing if nobody else comes meanwhile."""
PATIENCE_SECONDS = 600.0
"""How long to wait for the other machines."""
END_SECONDS = 60.0
"""How long the others may take to end after this machine."""


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What one process has claimed; the content of its file in the trial's folder."""

    machine: str
    items: list[int] = field(default_factory=list)
    """Items that it found without a record, and to which it gave one."""
    held_by_others: list[int] = field(default_factory=list)
    """Items that it could lock while another process held them."""
    refused: list[int] = field(default_factory=list)
    """Items that another process held, as often as it was refused them, as it should be."""


@dataclass(frozen=True, kw_only=True)
class LockTrial:
    """How a trial ended."""

    machines: tuple[str, ...]
    processes: int
    items: int
    refusals_between: int
    """How often a process was refused an item that one of another machine held."""
    refusals_within: int
    """How often a process was refused an item that another of its machine held."""
    held_twice: int
    """Items that two processes held at once: the locks do not hold."""
    claimed_again: int
    """Items that were claimed once more after their end: a machine was shown an old state of the folder."""

    @property
    def is_safe(self) -> bool:
        """Whether each item was claimed once."""
        return not self.held_twice and not self.claimed_again


def try_locks(
    folder: Path,
    *,
    nodes: int,
    processes: int,
    seconds: float,
    machine: str | None = None,
    on_wait: Callable[[int], None] | None = None,
) -> LockTrial:
    """Claim items in `folder` together with other machines that do the same, and compare what each got.

    An item has a lock, as a run has, and a record once it has ended. Who locks an item without a record makes
    a file in it that must not be there yet, which any shared file system does for one process alone, writes
    the record and removes the file.

    Args:
        folder: The folder that all machines see.
        nodes: Machines that take part, this one included.
        processes: Processes of this machine.
        seconds: How long to go on.
        machine: Name of this machine; its host name by default.
        on_wait: Is called every second with the number of machines that are missing.

    Raises:
        RunError: If the others do not come, not in time, or do not end, or a trial was stopped half-way.
    """
    trial, machine = folder / TRIAL, machine or socket.gethostname()
    (trial / "items").mkdir(parents=True, exist_ok=True)
    member = trial / f"{machine}.machine"
    if member.exists():
        raise RunError(
            f"{trial}: {machine} takes part already; give the command on another machine, or --nodes 1 for "
            "this one alone; if a trial was stopped half-way, remove the folder"
        )
    member.touch()
    try:
        _wait_for_machines(trial, nodes, on_wait)
        _claim_in_processes(trial, machine, processes, seconds)
        return compare(read_claims(trial, nodes))
    finally:
        member.unlink(missing_ok=True)
        if not list(trial.glob("*.machine")):
            shutil.rmtree(trial, ignore_errors=True)


def _wait_for_machines(trial: Path, nodes: int, on_wait: Callable[[int], None] | None) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (missing := nodes - len(list(trial.glob("*.machine")))) > 0:
        if time.monotonic() > deadline:
            raise RunError(f"{trial}: {missing} of {nodes} machines have not come in {PATIENCE_SECONDS:g} s")
        if on_wait is not None:
            on_wait(missing)
        time.sleep(1.0)


def _claim_in_processes(trial: Path, machine: str, processes: int, seconds: float) -> None:
    """Let processes claim items, and write what they got."""
    context = multiprocessing.get_context("spawn")
    arguments = [(trial, machine, number, seconds) for number in range(processes)]
    workers = [context.Process(target=claim_items, args=each) for each in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RunError(f"{trial}: a process of the trial has failed; the lines above say why")
    (trial / f"{machine}.done").touch()


def claim_items(trial: Path, machine: str, number: int, seconds: float) -> None:
    """Claim items for so many seconds, as one process."""
    random, claims = Random(f"{machine}{number}"), Claims(machine=machine)
    item, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        place = trial / "items" / f"{item:06}"
        if (place / RECORD).exists():
            item += 1
            continue
        place.mkdir(exist_ok=True)
        try:
            with file_lock(place / LOCK, name=place, error=RunInUseError):
                if not (place / RECORD).exists():
                    _hold(place, item, claims, random)
        except RunInUseError:
            claims.refused.append(item)
            time.sleep(random.uniform(0, HOLD_SECONDS))
    write_json(trial / f"{machine}.{number}.claims", asdict(claims))


def _hold(place: Path, item: int, claims: Claims, random: Random) -> None:
    """Hold an item for a moment, and end it."""
    try:
        os.close(os.open(place / HELD, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        claims.held_by_others.append(item)
        return
    time.sleep(random.uniform(0, HOLD_SECONDS))
    write_json(place / RECORD, claims.machine)
    time.sleep(HOLD_SECONDS)  # Some servers count time in hundredths of a second; no run ends in one.
    (place / HELD).unlink(missing_ok=True)
    claims.items.append(item)


def read_claims(trial: Path, nodes: int) -> list[Claims]:
    """Return what all processes of all machines claimed, once they have ended."""
    deadline = time.monotonic() + END_SECONDS
    while len(list(trial.glob("*.done"))) < nodes:
        if time.monotonic() > deadline:
            raise RunError(
                f"{trial}: not all machines have ended their part; remove the folder and try again"
            )
        time.sleep(0.1)
    return [Claims(**read_json(path, error=RunError)) for path in sorted(trial.glob("*.claims"))]


def compare(claims: Sequence[Claims]) -> LockTrial:
    """Return what the claims of all processes say about the locks.

    Raises:
        RunError: If the machines claimed one after the other, which says nothing.
    """
    counts = Counter(item for each in claims for item in each.items)
    held = {item for each in claims for item in each.held_by_others}
    owners = {item: each.machine for each in claims for item in each.items}
    refusals = Counter(owners.get(item) == each.machine for each in claims for item in each.refused)
    trial = LockTrial(
        machines=tuple(dict.fromkeys(each.machine for each in claims)),
        processes=len(claims),
        items=len(counts),
        refusals_between=refusals[False],
        refusals_within=refusals[True],
        held_twice=len(held),
        claimed_again=sum(count > 1 and item not in held for item, count in counts.items()),
    )
    if trial.is_safe and not _have_competed(claims):
        raise RunError(f"{', '.join(trial.machines)}: did not take part at the same time; try again")
    return trial


def _have_competed(claims: Sequence[Claims]) -> bool:
    """Return whether some items lie between the first and the last that each machine claimed."""
    items: dict[str, list[int]] = {each.machine: [] for each in claims}
    for each in claims:
        items[each.machine] += each.items
    return all(items.values()) and max(map(min, items.values())) <= min(map(max, items.values()))
