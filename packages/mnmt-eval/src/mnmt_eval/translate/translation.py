"""The translation of a line, and the formats in which it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from mnmt_data.readers import base_language
from mnmt_eval.translate.boundaries import Joint
from mnmt_eval.translate.lines import SourceLine

_WITHOUT_SPACES = ("zh", "yue", "wuu", "ja")
"""Languages that put no space between sentences."""

_UNSPACED_WORDS = ("th", "lo", "km", "my", "bo", "dz")
"""Languages that put spaces between sentences, but not between words."""

Format = Literal["text", "table", "json"]


@dataclass(frozen=True, kw_only=True)
class ScoredTranslation:
    """One translation of a line, or of a part of one."""

    text: str
    """The translation without line breaks."""
    score: float
    """The log-probability divided by the length penalty; candidates are ranked by it."""
    log_prob: float
    """The sum of the tokens' log-probabilities, in nats."""
    complete: bool = True
    """Whether the model ended the translation; if not, the maximal length cut it off."""


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The candidates for the translation of a line."""

    n_best: tuple[ScoredTranslation, ...]
    """At least one candidate, best score first."""
    parts: int = 1
    """The parts that were translated one by one: several of a line that is too long, 0 of a blank one."""

    @property
    def text(self) -> str:
        """The best translation."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """The score of the best translation."""
        return self.n_best[0].score

    @property
    def truncated(self) -> bool:
        """Whether the maximal length cut the best translation off."""
        return not self.n_best[0].complete


BLANK = Translation(n_best=(ScoredTranslation(text="", score=0.0, log_prob=0.0),), parts=0)
"""The translation of a blank line."""


def join_parts(
    parts: Sequence[tuple[ScoredTranslation, ...]], *, joints: Sequence[Joint], target: str
) -> Translation:
    """Join the translations of the parts of a line, at least one.

    The i-th best of a line is the i-th best of each part, one after the other, up to the shortest list.
    Its score is the mean of the parts' scores, its log-probability the sum.

    Args:
        parts: The candidates of each part, best first.
        joints: The places before each part.
        target: Their language; it decides with the joint whether a space is put between two parts.
    """
    if len(parts) == 1:
        return Translation(n_best=parts[0])
    spaces = [_space(joint, base_language(target)) for joint in joints]
    n_best = tuple(_concatenate(candidates, spaces) for candidates in zip(*parts, strict=False))
    return Translation(n_best=n_best, parts=len(parts))


def _space(joint: Joint, language: str) -> str:
    """Return the space between the translations of two parts, or an empty text."""
    is_whole = joint == "word" or (joint == "run" and language in _UNSPACED_WORDS)
    return "" if is_whole or language in _WITHOUT_SPACES else " "


def _concatenate(candidates: Sequence[ScoredTranslation], spaces: Sequence[str]) -> ScoredTranslation:
    text = ""
    for candidate, space in zip(candidates, spaces, strict=True):
        text += (space if text and candidate.text else "") + candidate.text
    return ScoredTranslation(
        text=text,
        score=sum(candidate.score for candidate in candidates) / len(candidates),
        log_prob=sum(candidate.log_prob for candidate in candidates),
        complete=all(candidate.complete for candidate in candidates),
    )


def as_text(line: SourceLine, translation: Translation) -> str:
    """Format the best translation as a line."""
    return f"{translation.text}\n"


def as_table(line: SourceLine, translation: Translation) -> str:
    """Format a line per candidate, best first: number of the source line, score and text, tab-separated."""
    rows = ((line.number, f"{candidate.score:.6f}", candidate.text) for candidate in translation.n_best)
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def as_json(line: SourceLine, translation: Translation) -> str:
    """Format a translation with all its numbers as one line of JSON."""
    content = {
        "line": line.number,
        "target": line.language,
        "text": translation.text,
        "score": translation.score,
        "truncated": translation.truncated,
        "parts": translation.parts,
        "n_best": [asdict(candidate) for candidate in translation.n_best],
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


FORMATS: Mapping[Format, Callable[[SourceLine, Translation], str]] = {
    "text": as_text,
    "table": as_table,
    "json": as_json,
}
"""The functions that format a translation, by name."""
