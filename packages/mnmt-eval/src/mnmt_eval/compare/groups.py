"""Scores of groups of sentences: by the language a pair was written in, and by the source's length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import count_lengths
from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.runs.texts import ReferenceText

GROUPINGS = ("origin", "length", "eighths", "thirds")
"""Ways to group sentences: by the side written first, by ranges of source length, in parts by length."""

SOURCE_ORIGINAL = "source-original"
TARGET_ORIGINAL = "target-original"
OTHER_ORIGINAL = "other-original"
UNKNOWN = "unknown"
_ORIGINS = (SOURCE_ORIGINAL, TARGET_ORIGINAL, OTHER_ORIGINAL, UNKNOWN)
_THIRDS = ("short", "medium", "long")
_EIGHTHS = ("1/8 short", "2/8", "3/8", "4/8 medium", "5/8", "6/8", "7/8", "8/8 long")


def group_sentences(text: ReferenceText, grouping: str) -> list[str]:
    """Return the group of each sentence of a text.

    Raises:
        EvalError: If the grouping is not one of `GROUPINGS`, or the text lacks sources, task or origins.
    """
    if grouping == "origin":
        if text.origins is None:
            raise EvalError(f"{text.testset} {text.task}: where its pairs were written is not known.")
        return origin_groups(text.origins, task=text.task)
    if grouping not in GROUPINGS:
        raise EvalError(f"`--by` must be one of {', '.join(GROUPINGS)}, but is {grouping!r}.")
    if not text.src:
        raise EvalError(f"groups by {grouping} need the sources; name them with --source.")
    if not text.task:
        raise EvalError(
            f"groups by {grouping} need the language pair; name it with --task, as in --task en-de."
        )
    lengths, bounds = count_lengths(text.src, language=languages_of(text.task)[0])
    if grouping == "length":
        return length_groups(lengths, bounds=bounds)
    return length_eighths(lengths) if grouping == "eighths" else length_thirds(lengths)


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


def length_eighths(lengths: Sequence[int]) -> list[str]:
    """Name eighths of the test set by length, `1/8 short` to `8/8 long` (Zhang et al. 2022, figs. 3 and 8).

    Of its eight disjoint groups the paper calls the shortest, one in the middle and the longest Short, Medium
    and Long. It does not say which of the two in the middle; here `4/8 medium` ends at the median. Of
    sentences of equal length the earlier one counts as shorter.
    """
    return _equal_parts(lengths, _EIGHTHS)


def length_thirds(lengths: Sequence[int]) -> list[str]:
    """Name thirds of the test set by length `short`, `medium` and `long`.

    Of sentences of equal length the earlier one counts as shorter.
    """
    return _equal_parts(lengths, _THIRDS)


def _equal_parts(lengths: Sequence[int], names: Sequence[str]) -> list[str]:
    rank = np.empty(len(lengths), dtype=np.int64)
    rank[np.argsort(lengths, kind="stable")] = np.arange(len(lengths))
    return [names[part] for part in (rank * len(names) // max(len(lengths), 1)).tolist()]


def group_rows(groups: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return {group: which sentences are in it, (sentences,)}.

    Args:
        groups: The group of each sentence.

    Returns:
        The groups that have sentences, origins from source to unknown, lengths ascending.
    """
    labels = np.asarray(groups)
    return {name: labels == name for name in sorted(set(groups), key=_order)}


def _order(group: str) -> tuple[int, int, str]:
    """Return a sort key: origins and parts in order, lengths by number, other names by the alphabet."""
    for known in (_ORIGINS, _THIRDS, _EIGHTHS):
        if group in known:
            return 0, known.index(group), group
    least = group.rstrip("+").partition("-")[0]
    return (1, int(least), group) if least.isdecimal() else (2, 0, group)
