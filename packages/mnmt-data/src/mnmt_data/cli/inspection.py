"""What prepared data hold, for a person to look over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any
from unicodedata import east_asian_width

from mnmt_data.store.prepared import PreparedData

WIDTH = 100
"""Columns that the text fits in."""


def describe(data: PreparedData, *, samples: int) -> dict[str, Any]:
    """Count, lengths, how the vocabulary suits, what filters dropped with samples, the first test pairs."""
    said = data.description
    return {
        "tasks": list(data.tasks),
        "zero_shot": list(data.zero_shot),
        "vocabulary": said["vocabulary"],
        "splits": {
            split: {task: {**counts, **_rates(counts)} for task, counts in tasks.items()}
            for split, tasks in said["counts"].items()
        },
        "coverage": said["coverage"],
        "filters": {
            task: {**report, "samples": {name: found[:samples] for name, found in report["samples"].items()}}
            for task, report in said["filters"].items()
        },
        "irreducible": data.irreducible,
        "samples": {task: list(_samples(data, task, samples)) for task in data.evaluated},
    }


def table(description: dict[str, Any]) -> str:
    """The description as text of at most `WIDTH` columns."""
    lines = list(_splits(description))
    if description["zero_shot"]:
        lines += ["", f"never trained on: {', '.join(description['zero_shot'])}"]
    lines += ["", *_coverage(description)]
    for task, report in description["filters"].items():
        lines += ["", *_filters(task, report)]
    for task, pairs in description["samples"].items():
        for pair in pairs:
            lines += ["", *_pair(f"{task}: ", pair["src"], pair["tgt"])]
    return "\n".join(lines)


def _rates(counts: dict[str, int]) -> dict[str, float]:
    tokens = max(counts["tgt_tokens"], 1)
    return {
        "mean_length": counts["tgt_tokens"] / max(counts["pairs"], 1),
        "unknown": counts["unknown_tokens"] / tokens,
        "bytes": counts["byte_tokens"] / tokens,
    }


def _samples(data: PreparedData, task: str, count: int) -> Iterator[dict[str, str]]:
    src, tgt = data.text("test", task)
    for source, target in zip(src[:count], tgt[:count], strict=True):
        yield {"src": source, "tgt": target}


def _splits(description: dict[str, Any]) -> Iterator[str]:
    head = ("pairs", "src tokens", "tgt tokens", "mean", "longest", "unknown", "bytes")
    yield f"{'split':<12}{'task':<10}" + "".join(
        f"{name:>{width}}" for name, width in zip(head, (13, 15, 15, 8, 9, 9, 9), strict=True)
    )
    for split, tasks in description["splits"].items():
        for task, row in tasks.items():
            counts = f"{row['pairs']:>13,}{row['src_tokens']:>15,}{row['tgt_tokens']:>15,}"
            lengths = f"{row['mean_length']:>8.1f}{row['longest']:>9,}"
            shares = f"{row['unknown']:>9.2%}{row['bytes']:>9.2%}"
            yield f"{_cut(split, 11):<12}{task:<10}{counts}{lengths}{shares}"


def _coverage(description: dict[str, Any]) -> Iterator[str]:
    yield f"{'language':<12}{'tokens a word':>15}{'tokens a character':>21}{'unknown':>9}{'bytes':>9}"
    for language, row in description["coverage"].items():
        tokens = f"{row['tokens_per_word']:>15.2f}{row['tokens_per_character']:>21.3f}"
        yield f"{language:<12}{tokens}{row['unknown_share']:>9.2%}{row['byte_share']:>9.2%}"


def _filters(task: str, report: dict[str, Any]) -> Iterator[str]:
    dropped = sum(report["counts"].values())
    yield f"left out of {task}: {dropped:,} of {report['read']:,} training pairs"
    for name, count in report["counts"].items():
        yield f"{count:>13,} {name}"
        for src, tgt in report["samples"].get(name, ()):
            yield from _pair(" " * 14, src, tgt)


def _pair(label: str, src: str, tgt: str) -> tuple[str, str]:
    room = WIDTH - len(label)
    return label + _cut(src, room), " " * len(label) + _cut(tgt, room)


def _cut(text: str, room: int) -> str:
    """The text, or its beginning and an ellipsis; Chinese characters are two columns wide."""
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    return text if not ends or ends[-1] <= room else f"{text[: bisect_right(ends, room - 1)]}…"
