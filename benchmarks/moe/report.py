"""The figures of the operators: in a file that grows case by case, as tables, and against targets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.measurement import Figures, print_table, provenance
from benchmarks.moe.bandwidth import COPY, COPY_TO_NEW
from benchmarks.moe.comparisons import BINS, EINSUM, GATHER, INDEX_ADD, PRODUCTS, ROWS
from mnmt_moe_ext import build_info

PACKAGES = ("mnmt-moe-ext", "mnmt-model", "torch", "triton", "moe-ops", "liger-kernel")


class Report:
    """The figures of all cases.

    Args:
        device: Device of the figures.
        options: Options that change the figures.
        out: JSON file. Its cases are taken over if machine, versions and options are the same.
    """

    def __init__(self, *, device: str, options: Figures, out: Path | None) -> None:
        self._head = describe(device) | {"options": options}
        self._out = out
        self.cases: Figures = {}
        self.failed: list[str] = []
        if out and out.exists():
            before = json.loads(out.read_text(encoding="utf-8"))
            if all(before.get(key) == value for key, value in self._head.items()):
                self.cases = before["cases"]
            else:
                print(f"{out} has figures of other versions, options or machines: all cases are run again")
        print(" ".join(f"{key}: {value};" for key, value in self._head.items()))

    def add(self, key: str, figures: Figures) -> None:
        """Add the figures of a case, and write all to the file."""
        self.cases[key] = figures
        if self._out:
            date = datetime.now(tz=UTC).date().isoformat()
            text = json.dumps({**self._head, "date": date, "cases": self.cases}, indent=1)
            self._out.write_text(text + "\n", encoding="utf-8")


def describe(device: str) -> Figures:
    """Return what the figures are measured with, without what changes from day to day."""
    description = provenance(*PACKAGES, gpu=device == "cuda")
    cpu = f"{description['machine']}, {torch.backends.cpu.get_cpu_capability()}"
    return {
        "machine": f"{description['gpu']} ({cpu})" if device == "cuda" else cpu,
        "versions": description["versions"],
        "instruction_set": build_info().instruction_set,
    }


def print_comparison(name: str, figures: Figures) -> None:
    """Print a table with a row for each pass and way: its time, and the ratio to ours."""
    print(f"**{name}**, {figures['rows_in_bins']} rows in bins\n")
    print("Differences from the first way, of output and gradients:", end=" ")
    print(
        ", ".join(f"{way} {out:.1e} {grads:.1e}" for way, (out, grads) in figures["differences"].items()),
        "\n",
    )
    rows = []
    for each, times in figures["times"].items():
        for way, time in times.items():
            ratios = {f"over {ours}": over(time, times.get(ours)) for ours in (ROWS, BINS)}
            rows.append({"pass": each, "way": way, **time, **ratios})
    print_table(rows)
    for title, key in (("Not run", "not_run"), ("No CUDA graph", "not_captured")):
        for way, why in figures[key].items():
            print(f"\n{title}: {way}: {why}")
    print(flush=True)


def over(time: dict[str, float], ours: dict[str, float] | None) -> str:
    """Return the ratio of the medians."""
    return f"{time['median_ms'] / ours['median_ms']:.2f}" if ours else ""


def print_bandwidths(figures: Figures) -> None:
    """Print a table with a row for each movement."""
    print_table([{"movement": name, **row} for name, row in figures.items()])


EINSUM_TARGET = 20.0
SORTED_TARGET = 1.5
BANDWIDTH_TARGET = 0.8


def print_claims(cases: Figures) -> None:
    """Print a line for each target, with the range over all cases."""
    print("### Results against targets\n")
    operators = {key: case for key, case in cases.items() if key.startswith("operators:")}
    layers = {key: case for key, case in cases.items() if key.startswith("layers:")}
    at_64 = {key: case for key, case in operators.items() if key.startswith("operators: 64 ")}
    sorting = (INDEX_ADD, GATHER)
    print_range("einsum over ours in bins, 64 experts", ratios(at_64, (EINSUM,), BINS), EINSUM_TARGET)
    for ours in (ROWS, BINS):
        print_range(f"faster sorted pipeline over {ours}", ratios(operators, sorting, ours), SORTED_TARGET)
        print_range(f"the same with grouped_mm over {ours}", ratios(layers, sorting, ours), SORTED_TARGET)
    print_range(f"the same over {PRODUCTS}", ratios(layers, sorting, PRODUCTS), SORTED_TARGET)
    print_range("share of copy_'s bandwidth", shares(cases), BANDWIDTH_TARGET)


def ratios(cases: Figures, peers: tuple[str, ...], ours: str) -> Iterator[tuple[float, str]]:
    """Yield the median times of the fastest peer over ours, with the case and pass."""
    for key, case in cases.items():
        for comparison in case.values():
            for each, times in comparison["times"].items():
                theirs = [times[peer]["median_ms"] for peer in peers if peer in times]
                if theirs and ours in times:
                    yield min(theirs) / times[ours]["median_ms"], f"{key}, {each}"


def shares(cases: Figures) -> Iterator[tuple[float, str]]:
    """Yield the shares of the copy's bandwidth, with the case and movement."""
    for key, case in cases.items():
        if key.startswith("bandwidth:"):
            for name, row in case.items():
                if name not in (COPY, COPY_TO_NEW):
                    yield row["share_of_copy"], f"{key}, {name}"


def print_range(what: str, measured: Iterator[tuple[float, str]], target: float) -> None:
    """Print the lowest and the highest value, and how many reach the target."""
    values = sorted(measured)
    if not values:
        print(f"- {what}: not measured")
        return
    reached = sum(value >= target for value, _ in values)
    (lowest, where), (highest, _) = values[0], values[-1]
    print(f"- {what}: {lowest:.2f} to {highest:.2f}; {reached} of {len(values)} reach {target:g}", end="; ")
    print(f"the lowest is of {where}")
