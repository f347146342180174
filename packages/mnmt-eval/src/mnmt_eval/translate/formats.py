"""How translations are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Literal

from mnmt_eval.translate.translation import Translation
from mnmt_eval.translate.window import Line

Format = Literal["text", "table", "json"]


def as_text(line: Line, translation: Translation) -> str:
    """The best translation as a line."""
    return f"{translation.text}\n"


def as_table(line: Line, translation: Translation) -> str:
    """A line a candidate, best first: number of the source line, score, text, with tabs between them."""
    rows = ((line.number, f"{found.score:.6f}", found.text) for found in translation.n_best)
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def as_json(line: Line, translation: Translation) -> str:
    """All that is known of a translation, as one line of JSON."""
    known = {
        "line": line.number,
        "target": line.target,
        "text": translation.text,
        "score": translation.score,
        "truncated": translation.truncated,
        "parts": translation.parts,
        "n_best": [asdict(candidate) for candidate in translation.n_best],
    }
    return json.dumps(known, ensure_ascii=False) + "\n"


FORMATS: Mapping[Format, Callable[[Line, Translation], str]] = {
    "text": as_text,
    "table": as_table,
    "json": as_json,
}
"""By their names."""
