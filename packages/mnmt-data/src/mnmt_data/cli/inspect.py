"""`mnmt-data inspect`."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from unicodedata import east_asian_width

from cyclopts import Parameter

from mnmt_data.cli.progress import Count, Json, report

if TYPE_CHECKING:
    from mnmt_data.store.description import SplitInfo
    from mnmt_data.store.prepared import PreparedData

WIDTH = 100
"""Columns of the text, at most."""


def inspect(
    prepared: Path,
    *,
    samples: Count = 3,
    verify: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> None:
    """Show counts, dropped pairs and samples of prepared data.

    Args:
        prepared: Folder of prepared data, such as results/NAME/data.
        samples: Pairs to show of each filter, and of each task's test set.
        verify: First compare every file with its checksum.
        as_json: Print JSON.
    """
    from mnmt_data.store.prepared import open_prepared

    data = open_prepared(prepared)
    if verify:
        data.verify()
        report(f"verified: {prepared}")
    description = describe(data, samples=samples)
    print(json.dumps(description, ensure_ascii=False) if as_json else table(description))


def describe(data: PreparedData, *, samples: int) -> dict[str, Any]:
    """Return counts, lengths, coverage, dropped pairs with samples, and the first test pairs."""
    table = asdict(data.description)
    return {
        "tasks": list(data.tasks),
        "zero_shot": list(data.zero_shot),
        "vocabulary": table["vocabulary"],
        "splits": {
            split: {task: {**asdict(counts), **_rates(counts)} for task, counts in tasks.items()}
            for split, tasks in data.description.counts.items()
        },
        "coverage": table["coverage"],
        "filters": {
            task: {
                "read": report.read,
                "counts": dict(report.counts),
                "samples": {name: list(map(list, pairs[:samples])) for name, pairs in report.samples.items()},
            }
            for task, report in data.description.filters.items()
        },
        "leaks": table["leaks"],
        "dev_copies": table["dev_copies"],
        "sentences": table["sentences"],
        "warnings": list(data.description.warnings),
        "shards": table["shards"],
        "irreducible": data.irreducible,
        "power_law_limit": dict(data.description.power_law_limit),
        "samples": {task: list(_samples(data, task, samples)) for task in data.evaluated},
    }


def table(description: dict[str, Any]) -> str:
    """Lay the description out as text of at most `WIDTH` columns; only warnings are longer."""
    lines = list(_splits(description))
    if description["zero_shot"]:
        lines += ["", f"never trained on: {', '.join(description['zero_shot'])}"]
    lines += ["", f"vocabulary: {description['vocabulary']['size']:,} ids", "", *_coverage(description)]
    if description["irreducible"]:
        lines += ["", *_known_losses(description)]
    for task, dropped in description["filters"].items():
        lines += ["", *_filters(_readers(description, task), dropped)]
    lines += _leaks(description)
    lines += _sentences(description)
    for task, pairs in description["samples"].items():
        for pair in pairs:
            lines += ["", *_pair(f"{task}: ", pair["src"], pair["tgt"])]
    if description["warnings"]:
        lines += ["", *(f"warning: {line}" for line in description["warnings"])]
    return "\n".join(lines)


def _rates(counts: SplitInfo) -> dict[str, float]:
    tokens = max(counts.tgt_tokens, 1)
    return {
        "mean_length": counts.tgt_tokens / max(counts.pairs, 1),
        "unknown": counts.unknown_tokens / tokens,
        "bytes": counts.byte_tokens / tokens,
    }


def _samples(data: PreparedData, task: str, count: int) -> Iterator[dict[str, str]]:
    src, tgt = data.text("test", task)
    for source, target in zip(src[:count], tgt[:count], strict=True):
        yield {"src": source, "tgt": target}


def _splits(description: dict[str, Any]) -> Iterator[str]:
    head = ("pairs", "src tokens", "tgt tokens", "mean tgt", "longest side", "unknown", "bytes")
    yield f"{'split':<12}{'task':<10}" + "".join(
        f"{name:>{width}}" for name, width in zip(head, (13, 14, 14, 9, 13, 8, 7), strict=True)
    )
    for split, tasks in description["splits"].items():
        for task, row in tasks.items():
            counts = f"{row['pairs']:>13,}{row['src_tokens']:>14,}{row['tgt_tokens']:>14,}"
            lengths = f"{row['mean_length']:>9.1f}{row['longest_side']:>13,}"
            shares = f"{row['unknown']:>8.2%}{row['bytes']:>7.2%}"
            yield f"{_cut(split, 11):<12}{task:<10}{counts}{lengths}{shares}"


def _coverage(description: dict[str, Any]) -> Iterator[str]:
    yield f"{'language':<12}{'tokens a word':>15}{'tokens a character':>21}{'unknown':>9}{'bytes':>9}"
    for language, row in description["coverage"].items():
        tokens = f"{row['tokens_per_word']:>15.2f}{row['tokens_per_character']:>21.3f}"
        yield f"{language:<12}{tokens}{row['unknown_share']:>9.2%}{row['byte_share']:>9.2%}"


def _known_losses(description: dict[str, Any]) -> Iterator[str]:
    for task, loss in description["irreducible"].items():
        limit = description["power_law_limit"].get(task)
        also = "" if limit is None else f"; the power law of smaller models has the limit {limit:.4f}"
        yield f"irreducible loss of {task}: {loss:.4f} nats a token{also}"


def _readers(description: dict[str, Any], stored: str) -> list[str]:
    """Return the tasks that read the training pairs stored in a direction."""
    shards = description["shards"].get("train", {})
    return [task for task, first in shards.items() if first == stored] or [stored]


def _filters(tasks: list[str], report: dict[str, Any]) -> Iterator[str]:
    dropped = sum(report["counts"].values())
    yield f"left out of {' and '.join(tasks)}: {dropped:,} of {report['read']:,} training pairs"
    for name, count in report["counts"].items():
        yield f"{count:>13,} {name}"
        for src, tgt in report["samples"].get(name, ()):
            yield from _pair(" " * 14, src, tgt)


def _leaks(description: dict[str, Any]) -> Iterator[str]:
    """Yield the number of training pairs of each task dropped as copies of each set, by rule."""
    rows = [
        (name, " and ".join(_readers(description, stored)), counts)
        for stored, sets in description["leaks"].items()
        for name, counts in sets.items()
    ]
    width = max((len(tasks) + 2 for _, tasks, _ in rows), default=0)
    if rows:
        rules = "".join(f"{rule:>13}" for rule in rows[0][2])
        yield from ("", f"{'copies of':<12}{'in task':<{width}}{rules}")
    for name, tasks, counts in rows:
        numbers = "".join(f"{count:>13,}" for count in counts.values())
        yield f"{_cut(name, 11):<12}{tasks:<{width}}{numbers}"


def _sentences(description: dict[str, Any]) -> Iterator[str]:
    """Yield how many sentences of each set are too short for n-grams, and stand in training sentences."""
    head = ("sentences", "short", "in training", "by n-grams")
    if description["sentences"]:
        yield from ("", f"{'of set':<12}" + "".join(f"{name:>13}" for name in head))
    for name, counts in description["sentences"].items():
        yield f"{_cut(name, 11):<12}" + "".join(f"{count:>13,}" for count in counts.values())
    for task, count in description["dev_copies"].items():
        yield f"left out of dev {task}: {count:,} copies of test sentences"


def _pair(label: str, src: str, tgt: str) -> tuple[str, str]:
    columns = WIDTH - len(label)
    return label + _cut(src, columns), " " * len(label) + _cut(tgt, columns)


def _cut(text: str, columns: int) -> str:
    """Return the text, shortened by an ellipsis to fit; Chinese characters are two columns wide."""
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    return text if not ends or ends[-1] <= columns else f"{text[: bisect_right(ends, columns - 1)]}…"
