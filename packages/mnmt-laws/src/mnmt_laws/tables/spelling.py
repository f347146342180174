"""Names that look like slips of the keyboard."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

_CLOSE = 0.8


def closest(name: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The choice most like `name`, whatever its case, or None if none is alike."""
    plain = {_plain(choice): choice for choice in choices}
    found = difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def column_warnings(columns: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """A line for each column that is not read, but spelt much like one that could be."""
    absent = [name for name in known if name not in columns]
    slips = {name: closest(name, absent, cutoff=_CLOSE) for name in columns if name not in known}
    return tuple(
        f"column `{name}` is not read; rename it to `{meant}` if that is what it holds."
        for name, meant in slips.items()
        if meant
    )


def task_warnings(tasks: Iterable[str]) -> tuple[str, ...]:
    """A line for each group of tasks that differ only by case, spaces or the kind of dash."""
    alike: dict[str, list[str]] = defaultdict(list)
    for task in sorted(tasks):
        alike[re.sub(r"[\s_‐-―-]+", "", task.casefold())].append(task)
    return tuple(
        f"tasks {', '.join(f'`{task}`' for task in group)} are kept apart, but differ only by case, "
        f"spaces or dashes; write them alike if they are one."
        for group in alike.values()
        if len(group) > 1
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())
