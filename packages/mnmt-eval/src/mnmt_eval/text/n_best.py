"""N-best lists of other tools: fairseq-generate's, in the order of its batches, and Moses' fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mnmt_eval.errors import EvalError

_LINE = re.compile(r"(?P<kind>[STWHDPAEI])-(?P<id>\d+)\t(?P<rest>.*)", re.S)
_MOSES = "|||"


def best_translations(path: Path, lines: Sequence[str]) -> list[str]:
    """Return the best translation of each source if lines are an n-best list, else none.

    Raises:
        EvalError: If they are Moses' fields, whose best is not always the first.
    """
    if is_moses(lines):
        raise EvalError(f"{path}: is an n-best list; choose among its candidates with `mnmt-eval rerank`.")
    return [texts[0] for texts in fairseq_hypotheses(path, lines)] if is_fairseq(lines) else []


def is_fairseq(lines: Sequence[str]) -> bool:
    """Return whether lines are fairseq's: `S-0<TAB>source`, `H-0<TAB>score<TAB>text`, … and messages."""
    return any((match := _LINE.fullmatch(line)) and match["kind"] in "HD" for line in lines)


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
    texts: dict[int, list[str]] = {}
    for place, match in matches:
        if match["kind"] == kind:
            score, tab, text = match["rest"].partition("\t")
            if not tab:
                raise EvalError(f"{path}:{place}: must have a score, a tab and the text, but is {score!r}.")
            texts.setdefault(int(match["id"]), []).append(text)
    missing = next((number for number in range(max(texts)) if number not in texts), None)
    if missing is not None:
        raise EvalError(f"{path}: has {kind}-{max(texts)}, but no {kind}-{missing}; generate all sentences.")
    return [tuple(texts[number]) for number in sorted(texts)]


def is_moses(lines: Sequence[str]) -> bool:
    """Return whether all lines have the fields of Moses' n-best lists."""
    return bool(lines) and all(_MOSES in line and "\t" not in line for line in lines)


def moses_candidates(path: Path, lines: Sequence[str], column: str | None) -> Iterator[tuple[str, int, str]]:
    """Yield place, number of the source line and text of Moses' and Marian's `0 ||| text ||| …`.

    Raises:
        EvalError: If a line has no such number, or a column is named.
    """
    if column is not None:
        raise EvalError(f"{path}: has fields between |||, and no columns; leave out --column.")
    for number, content in enumerate(lines, start=1):
        place, fields = f"{path}:{number}", [field.strip() for field in content.split(_MOSES)]
        if len(fields) < 2 or not fields[0].isdecimal():
            raise EvalError(
                f"{place}: must be `0 ||| text ||| …`, the number of its source line first, but is "
                f"{content[:40]!r}."
            )
        yield place, int(fields[0]), fields[1]
