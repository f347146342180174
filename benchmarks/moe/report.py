"""The figures: printed as tables, and kept in a file from one run to the next."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.moe.comparisons import BINS, ROWS
from mnmt_moe_ext import build_info

PACKAGES = ("mnmt-moe-ext", "mnmt-model", "torch", "triton", "moe-ops", "liger-kernel")


class Report:
    """Figures of all cases, by their names.

    Args:
        device: They are of.
        options: That change them.
        out: File, of which the cases are taken over if machine, versions and options are the same.
    """

    def __init__(self, *, device: str, options: dict[str, Any], out: Path | None) -> None:
        self._head = described(device) | {"options": options}
        self._out = out
        self.found: dict[str, Any] = {}
        self.failed: list[str] = []
        if out and out.exists():
            before = json.loads(out.read_text(encoding="utf-8"))
            if all(before.get(key) == value for key, value in self._head.items()):
                self.found = before["cases"]
            else:
                print(f"{out} has figures of other versions, options or another machine: all is run again")
        print(" ".join(f"{key}: {value};" for key, value in self._head.items()))

    def add(self, key: str, figures: dict[str, Any]) -> None:
        """Take the figures of a case, and writes all to the file."""
        self.found[key] = figures
        if self._out:
            date = datetime.now(tz=UTC).date().isoformat()
            text = json.dumps({**self._head, "date": date, "cases": self.found}, indent=1)
            self._out.write_text(text + "\n", encoding="utf-8")


def described(device: str) -> dict[str, Any]:
    """What the figures are measured with."""
    cpu = f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"
    return {
        "machine": f"{torch.cuda.get_device_name()} ({cpu})" if device == "cuda" else cpu,
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
        "instruction_set": build_info().instruction_set,
    }


def installed(name: str) -> str | None:
    """The version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def print_comparison(name: str, found: dict[str, Any]) -> None:
    """A table: a row for each pass and way, its time, and how many times as long as ours it takes."""
    print(f"**{name}**, {found['rows_in_bins']} rows in bins\n")
    print("Differences from the first way, of output and gradients:", end=" ")
    print(
        ", ".join(f"{way} {out:.1e} {grads:.1e}" for way, (out, grads) in found["differences"].items()), "\n"
    )
    print("| pass | way | median ms | best ms | rounds | over ours in rows | over ours in bins |")
    print("|--|--|--|--|--|--|--|")
    for each, times in found["times"].items():
        for way, time in times.items():
            ratios = [over(time, times.get(ours)) for ours in (ROWS, BINS)]
            figures = [f"{time['median_ms']:.3f}", f"{time['best_ms']:.3f}", str(time["rounds"]), *ratios]
            print(f"| {each} | {way} | {' | '.join(figures)} |")
    for title, key in (("Not run", "not_run"), ("No CUDA graph", "not_captured")):
        for way, why in found[key].items():
            print(f"\n{title}: {way}: {why}")
    print(flush=True)


def over(time: dict[str, float], ours: dict[str, float] | None) -> str:
    """The ratio of the medians."""
    return f"{time['median_ms'] / ours['median_ms']:.2f}" if ours else ""


def print_bandwidths(found: dict[str, Any]) -> None:
    """A table: a row for each movement."""
    print("| movement | MiB | median ms | best ms | GB/s | share of copy_ |\n|--|--|--|--|--|--|")
    for name, row in found.items():
        print(f"| {name} | {' | '.join(str(row[key]) for key in row)} |")
    print(flush=True)
