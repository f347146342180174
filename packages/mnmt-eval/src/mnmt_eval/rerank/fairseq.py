"""The output of fairseq-generate, whose lines are in the order of its batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mnmt_eval.errors import EvalError

_LINE = re.compile(r"(?P<kind>[STWHDPAEI])-(?P<id>\d+)\t(?P<rest>.*)", re.S)
_FIRST_LINES = 100
"""Lines among which there is a source or a hypothesis, after messages of the log."""


def is_fairseq(lines: Sequence[str]) -> bool:
    """Return whether lines are fairseq's: `S-0<TAB>source`, `H-0<TAB>score<TAB>text`, … and messages."""
    kinds = [match["kind"] for line in lines[:_FIRST_LINES] if (match := _LINE.fullmatch(line))]
    return bool({"H", "D"}.intersection(kinds))


def fairseq_hypotheses(path: Path, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the hypotheses of each source, best first, in the order of the sources.

    Detokenised ones (`D-`) are taken if there are any, else those of the model's words (`H-`).

    Raises:
        EvalError: If a hypothesis has no text, or a number between the first and the last none.
    """
    matches = [
        (place, match) for place, line in enumerate(lines, start=1) if (match := _LINE.fullmatch(line))
    ]
    kind = "D" if any(match["kind"] == "D" for _, match in matches) else "H"
    found: dict[int, list[str]] = {}
    for place, match in matches:
        if match["kind"] == kind:
            score, tab, text = match["rest"].partition("\t")
            if not tab:
                raise EvalError(f"{path}:{place}: must have a score, a tab and the text, but is {score!r}.")
            found.setdefault(int(match["id"]), []).append(text)
    missing = next((number for number in range(max(found)) if number not in found), None)
    if missing is not None:
        raise EvalError(f"{path}: has {kind}-{max(found)}, but no {kind}-{missing}; generate all sentences.")
    return [tuple(found[number]) for number in sorted(found)]
