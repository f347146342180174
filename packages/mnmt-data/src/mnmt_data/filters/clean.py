"""One block of sentence pairs through all filters that judge a pair by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from mnmt_data.blocks import Block
from mnmt_data.filters.config import CleanConfig
from mnmt_data.filters.keys import Keys, pair_keys
from mnmt_data.filters.language import WrongLanguage
from mnmt_data.filters.normalise import normalise
from mnmt_data.filters.pair_filters import PairFilter, Ratio, TooLong, empty, identical
from mnmt_data.filters.report import EMPTY, IDENTICAL, RATIO, TOO_LONG, WRONG_LANGUAGE, FilterReport


@dataclass(frozen=True, kw_only=True)
class CleanBlock:
    """The pairs of a block that passed, normalised, in their order."""

    src: list[str]
    """Source sentences."""

    tgt: list[str]
    """Target sentences, as many."""

    rows: NDArray[np.int64]
    """`(pairs,)`, the number of each pair in its source, from 0."""

    origins: list[str] | None
    """The language each pair was written in, where the corpus knows it."""

    keys: Keys
    """By which duplicates and held-out sentences are found."""

    report: FilterReport
    """What was dropped; every filter in use is counted."""

    def __len__(self) -> int:
        return len(self.src)


class Cleaner:
    """The filters of one task, in the order in which they are applied; pickled, it is a few settings."""

    def __init__(self, config: CleanConfig, task: str, *, languages: Iterable[str] = ()) -> None:
        """Set up the filters that `config` asks for.

        Args:
            config: The `[data.clean]` table.
            task: The language pair, `en-de`.
            languages: Others that text may be in by mistake, beside those of the task and English.

        Raises:
            DataError: If a language of the task cannot be recognised, or nothing that could is installed.
        """
        self.config = config
        self.task = task
        self.filters = _filters(config, task, languages)


def _filters(config: CleanConfig, task: str, languages: Iterable[str]) -> dict[str, PairFilter]:
    filters: dict[str, PairFilter] = {EMPTY: empty}
    if config.identical:
        filters[IDENTICAL] = identical
    filters[TOO_LONG] = TooLong(config.max_characters)
    filters[RATIO] = Ratio(config.max_ratio)
    if config.language_id:
        filters[WRONG_LANGUAGE] = WrongLanguage.of(task, languages, odds=config.language_odds)
    return filters


def clean_block(block: Block, filters: Cleaner) -> CleanBlock:
    """Normalise the pairs of a block and drops those that a filter refuses.

    A pair is counted by the first filter that drops it: pairs read = pairs kept + sum of the counts.
    """
    normal = partial(normalise, form=filters.config.normalisation)
    src, tgt = list(map(normal, block.src)), list(map(normal, block.tgt))
    places = np.arange(len(block))
    report = FilterReport()
    for name, drops in filters.filters.items():
        dropped = drops(src, tgt)
        report += FilterReport.of(name, list(compress(src, dropped)), list(compress(tgt, dropped)))
        if dropped.any():
            src, tgt, places = list(compress(src, ~dropped)), list(compress(tgt, ~dropped)), places[~dropped]
    return CleanBlock(
        src=src,
        tgt=tgt,
        rows=block.first + places,
        origins=None if block.origins is None else [block.origins[place] for place in places],
        keys=pair_keys(src, tgt, near=filters.config.near_duplicates),
        report=report,
    )
