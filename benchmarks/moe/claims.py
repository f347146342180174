"""What is to be shown, and what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.moe.bandwidth import COPY, COPY_TO_NEW
from benchmarks.moe.comparisons import BINS, EINSUM, GATHER, INDEX_ADD, PRODUCTS, ROWS

EINSUM_TARGET = 20.0
SORTED_TARGET = 1.5
BANDWIDTH_TARGET = 0.8


def print_claims(cases: dict[str, Any]) -> None:
    """A line for each, with the range over all cases."""
    print("### Found against what was aimed at\n")
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


def ratios(cases: dict[str, Any], peers: tuple[str, ...], ours: str) -> Iterator[tuple[float, str]]:
    """Median times of the fastest of the peers over ours, with the case and pass."""
    for key, case in cases.items():
        for comparison in case.values():
            for each, times in comparison["times"].items():
                theirs = [times[peer]["median_ms"] for peer in peers if peer in times]
                if theirs and ours in times:
                    yield min(theirs) / times[ours]["median_ms"], f"{key}, {each}"


def shares(cases: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Of the copy's bandwidth, with the case and movement."""
    for key, case in cases.items():
        if key.startswith("bandwidth:"):
            for name, row in case.items():
                if name not in (COPY, COPY_TO_NEW):
                    yield row["share_of_copy"], f"{key}, {name}"


def print_range(what: str, found: Iterator[tuple[float, str]], target: float) -> None:
    """The lowest and the highest, and how many reach the target."""
    values = sorted(found)
    if not values:
        print(f"- {what}: not measured")
        return
    reached = sum(value >= target for value, _ in values)
    (lowest, where), (highest, _) = values[0], values[-1]
    print(f"- {what}: {lowest:.2f} to {highest:.2f}; {reached} of {len(values)} reach {target:g}", end="; ")
    print(f"the lowest is of {where}")
