"""What prepared data hold, for a person to look over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mnmt_data.prepared import Prepared
from mnmt_data.vocab import UNK


def describe(data: Prepared, *, samples: int) -> dict[str, Any]:
    """Counts, lengths, share of unknown tokens, what filters dropped, the first test pairs of each task."""
    splits = data.description["counts"]
    return {
        "tasks": list(data.tasks),
        "vocabulary": data.description["vocabulary"],
        "splits": {
            split: {task: {**counts, **_lengths(data, split, task)} for task, counts in tasks.items()}
            for split, tasks in splits.items()
        },
        "dropped": data.description["dropped"],
        "irreducible": data.irreducible,
        "samples": {task: list(_samples(data, task, samples)) for task in data.tasks},
    }


def table(description: dict[str, Any]) -> str:
    """The description as text."""
    lines = [f"{'split':<8}{'task':<8}{'pairs':>10}{'tgt tokens':>12}{'mean':>7}{'longest':>9}{'unknown':>9}"]
    for split, tasks in description["splits"].items():
        for task, row in tasks.items():
            counts = f"{row['pairs']:>10,}{row['tgt_tokens']:>12,}"
            lengths = f"{row['mean_length']:>7.1f}{row['longest']:>9}"
            lines.append(f"{split:<8}{task:<8}{counts}{lengths}{row['unknown']:>9.2%}")
    for task, dropped in description["dropped"].items():
        counts = ", ".join(f"{count:,} {name}" for name, count in dropped.items())
        lines.append(f"dropped from {task}: {counts}")
    for task, pairs in description["samples"].items():
        lines += [f"\n{task}: {pair['src']}\n{' ' * len(task)}  {pair['tgt']}" for pair in pairs]
    return "\n".join(lines)


def _lengths(data: Prepared, split: str, task: str) -> dict[str, float]:
    target = data.shard(split, task).tgt
    pairs, tokens = max(len(target), 1), max(target.values.size, 1)
    return {
        "mean_length": target.values.size / pairs,
        "longest": int(target.lengths.max(initial=0)),
        "unknown": np.count_nonzero(target.values == UNK) / tokens,
    }


def _samples(data: Prepared, task: str, count: int) -> Iterator[dict[str, str]]:
    src, tgt = data.text("test", task)
    for source, target in zip(src[:count], tgt[:count], strict=True):
        yield {"src": source, "tgt": target}
