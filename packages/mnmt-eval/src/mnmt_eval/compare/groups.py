"""Scores of groups of sentences: by the language a pair was written in, and by the source's length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import count_lengths
from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.runs.texts import ReferenceText

GROUPINGS = ("origin", "length", "thirds")
"""Ways to group sentences: by the side written first, by ranges of source length, in thirds by length."""

SOURCE_ORIGINAL = "source-original"
TARGET_ORIGINAL = "target-original"
OTHER_ORIGINAL = "other-original"
UNKNOWN = "unknown"
_ORIGINS = (SOURCE_ORIGINAL, TARGET_ORIGINAL, OTHER_ORIGINAL, UNKNOWN)
_THIRDS = ("short", "medium", "long")


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """A metric of the sentences of one group."""

    group: str
    sentences: int
    value: float


def group_sentences(text: ReferenceText, grouping: str) -> list[str]:
    """Return the group of each sentence of a text.

    Raises:
        EvalError: If the grouping is none of `GROUPINGS`, or the text lacks what it needs.
    """
    if grouping == "origin":
        if text.origins is None:
            raise EvalError(f"{text.testset} {text.task}: where its pairs were written is not known.")
        return origin_groups(text.origins, task=text.task)
    if grouping not in GROUPINGS:
        raise EvalError(f"sentences are grouped by {', '.join(GROUPINGS)}, but not by {grouping!r}.")
    if not text.src:
        raise EvalError(f"groups by {grouping} need the sources; name them with --source.")
    lengths, bounds = count_lengths(text.src, language=languages_of(text.task)[0])
    return length_thirds(lengths) if grouping == "thirds" else length_groups(lengths, bounds=bounds)


def origin_groups(origins: Sequence[str], *, task: str) -> list[str]:
    """Name the side of each pair that was written first (Zhang et al. 2022, table 2).

    Translated text is plainer than text that was written in a language, so such pairs are easier.

    Args:
        origins: The language that each pair was written in; `""` if unknown.
        task: The language pair, such as `en-de`.

    Returns:
        `source-original`, `target-original`, `other-original` or `unknown`, for each pair.
    """
    src, tgt = languages_of(task)
    names = {"": UNKNOWN, src: SOURCE_ORIGINAL, tgt: TARGET_ORIGINAL}
    return [names.get(origin, OTHER_ORIGINAL) for origin in origins]


def length_groups(lengths: Sequence[int], *, bounds: Sequence[int]) -> list[str]:
    """Name the range that each length is in: with bounds 0, 10 and 20 `0-9`, `10-19` or `20+`.

    Args:
        lengths: The lengths of the sources.
        bounds: The smallest length of each group, ascending from 0.

    Raises:
        ValueError: If the bounds do not ascend from 0.
    """
    if not bounds or bounds[0] != 0 or any(low >= high for low, high in pairwise(bounds)):
        raise ValueError(f"`bounds` must ascend from 0, but are {tuple(bounds)}.")
    names = [*(f"{low}-{high - 1}" for low, high in pairwise(bounds)), f"{bounds[-1]}+"]
    return [names[place] for place in np.searchsorted(bounds, lengths, side="right") - 1]


def length_thirds(lengths: Sequence[int]) -> list[str]:
    """Name thirds of the test set by length `short`, `medium` and `long` (Zhang et al. 2022, fig. 3).

    Of sentences of equal length the earlier one counts as shorter.
    """
    rank = np.empty(len(lengths), dtype=np.int64)
    rank[np.argsort(lengths, kind="stable")] = np.arange(len(lengths))
    return [_THIRDS[third] for third in rank * 3 // max(len(lengths), 1)]


def score_groups(
    value: Callable[[NDArray[np.float64]], float], statistics: NDArray[np.float64], groups: Sequence[str]
) -> tuple[GroupScore, ...]:
    """Compute a metric of each group, as if the group's sentences were the test set.

    Args:
        value: A function from statistics of sentences to the metric's value.
        statistics: (sentences, k), the statistics of all sentences.
        groups: The group of each sentence.

    Returns:
        The groups that have sentences, origins from source to unknown, lengths ascending.

    Raises:
        ValueError: If there are not as many groups as sentences.
    """
    if len(groups) != len(statistics):
        raise ValueError(f"`groups` must be as many as sentences ({len(statistics)}), but are {len(groups)}.")
    labels = np.asarray(groups)
    return tuple(
        GroupScore(group=name, sentences=int(mask.sum()), value=value(statistics[mask]))
        for name in sorted(set(groups), key=_order)
        for mask in [labels == name]
    )


def _order(group: str) -> tuple[int, int, str]:
    """Return a sort key: origins and thirds in order, lengths by number, other names by the alphabet."""
    for known in (_ORIGINS, _THIRDS):
        if group in known:
            return 0, known.index(group), group
    least = group.rstrip("+").partition("-")[0]
    return (1, int(least), group) if least.isdecimal() else (2, 0, group)
