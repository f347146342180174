"""The [data.clean] table of a study, and its filters applied to one block of sentence pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.keys import Keys, pair_keys
from mnmt_data.filters.language_id import Library, WrongLanguage, open_identifier
from mnmt_data.filters.normalise import Form, normalise
from mnmt_data.filters.pair_filters import Drops, PairFilter, Ratio, TooLong, empty, identical
from mnmt_data.filters.report import BAD_LINE, EMPTY, IDENTICAL, RATIO, TOO_LONG, WRONG_LANGUAGE, FilterReport
from mnmt_data.readers.reader import Block
from mnmt_data.study import Ranges, check_ranges


@dataclass(frozen=True, kw_only=True)
class CleanConfig:
    """The filters of training pairs, and the form of all text."""

    RANGES: ClassVar[Ranges] = {"[1, inf]": ("max_characters", "max_ratio", "language_odds")}

    normalisation: Form = "NFC"
    """Unicode form of all text: `NFC`, or `NFKC`, which also replaces full-width and superscript forms."""

    identical: bool = True
    """Whether to drop pairs whose sides are equal: untranslated text."""

    max_characters: int = 2000
    """Most characters of a side; `DataConfig.max_length` bounds its tokens later."""

    max_ratio: float = 3.0
    """Largest ratio of the lengths of the sides, by `pair_filters.length_ratios`; `inf` for no limit.

    3.0 drops 2 in 10,000 of 180,000 published translations into German, French and Chinese, most of them
    wrong, and a third of randomly matched sentences.
    """

    language_id: Literal[Library, True, False] = False
    """Library for dropping pairs with a side in another language of the study, or in English; `true` is
    py3langid."""

    language_id_model: Path | None = None
    """The model for fastText."""

    language_odds: float = 20.0
    """Drop a side if another language is more than this many times as likely as its own.

    With py3langid and 20, this drops 6 in 10,000 published translations, mostly names, code and untranslated
    text, and finds 63 to 99% of sides in another language, fewest if they are short.
    """

    near_duplicates: bool = False
    """Whether to drop pairs that differ from an earlier one only in case, digits, punctuation and spaces."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.language_id is True:
            object.__setattr__(self, "language_id", "py3langid")
        if (self.language_id == "fasttext") != (self.language_id_model is not None):
            raise ValueError(
                '`language_id_model` must be given for `language_id = "fasttext"`, and only for it.'
            )


@dataclass(frozen=True, kw_only=True)
class CleanBlock:
    """The pairs of a block that passed the filters, normalised, in order."""

    src: list[str]
    """Source sentences."""

    tgt: list[str]
    """Target sentences, one for each source."""

    rows: NDArray[np.int64]
    """`(pairs,)`, the number of each pair in its source, from 0."""

    origins: list[str] | None
    """The original language of each pair, if the corpus has it."""

    keys: Keys
    """Hashes that identify duplicates and held-out sentences."""

    report: FilterReport
    """Report of the dropped pairs, with a count for every filter in use."""

    scores: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """{score: (pairs,)} from other tools."""

    def __len__(self) -> int:
        return len(self.src)


class Cleaner:
    """The filters of one task, in order of application; small when pickled."""

    def __init__(
        self,
        config: CleanConfig,
        task: str,
        *,
        languages: Iterable[str] = (),
        min_scores: Mapping[str, float] | None = None,
    ) -> None:
        """Set up the filters of `config`.

        Args:
            config: The `[data.clean]` table.
            task: The language pair, `en-de`.
            languages: More languages that text may be in by mistake, besides those of the task and English.
            min_scores: {score: threshold}; these filters come first.

        Raises:
            DataError: If a language of the task cannot be recognised, or the library is not installed.
        """
        self.config = config
        self.task = task
        self.min_scores = dict(min_scores or {})
        self.filters = _filters(config, task, languages)


def _filters(config: CleanConfig, task: str, languages: Iterable[str]) -> dict[str, PairFilter]:
    filters: dict[str, PairFilter] = {EMPTY: empty}
    if config.identical:
        filters[IDENTICAL] = identical
    filters[TOO_LONG] = TooLong(config.max_characters)
    filters[RATIO] = Ratio(config.max_ratio)
    if not isinstance(config.language_id, bool):
        identifier = open_identifier(config.language_id, config.language_id_model)
        filters[WRONG_LANGUAGE] = WrongLanguage.of(
            task, languages, identifier=identifier, odds=config.language_odds
        )
    return filters


def clean_block(block: Block, filters: Cleaner) -> CleanBlock:
    """Normalise the pairs of a block, and apply the filters.

    A pair is counted by the first filter that drops it: pairs read = pairs kept + sum of the counts.
    """
    normal = partial(normalise, form=filters.config.normalisation)
    pairs = _Pairs(
        src=list(map(normal, block.src)),
        tgt=list(map(normal, block.tgt)),
        places=np.arange(len(block)),
        report=_bad_lines(block),
    )
    if block.bad:
        pairs.remove(np.isin(pairs.places, [line.row - block.first for line in block.bad]))
    for name, least in filters.min_scores.items():
        pairs.drop(name, block.scores[name][pairs.places] < least)
    for name, drops in filters.filters.items():
        pairs.drop(name, drops(pairs.src, pairs.tgt))
    return CleanBlock(
        src=pairs.src,
        tgt=pairs.tgt,
        rows=block.first + pairs.places,
        origins=None if block.origins is None else [block.origins[place] for place in pairs.places],
        keys=pair_keys(pairs.src, pairs.tgt, near=filters.config.near_duplicates),
        report=pairs.report,
        scores={name: values[pairs.places] for name, values in block.scores.items()},
    )


@dataclass(kw_only=True)
class _Pairs:
    """The remaining pairs of a block."""

    src: list[str]
    tgt: list[str]
    places: NDArray[np.int64]
    """(pairs,) their positions in the block."""
    report: FilterReport

    def drop(self, name: str, dropped: Drops) -> None:
        """Remove the pairs that the filter `name` drops, and report on them."""
        src, tgt = list(compress(self.src, dropped)), list(compress(self.tgt, dropped))
        self.report += FilterReport.of(name, src, tgt)
        self.remove(dropped)

    def remove(self, dropped: Drops) -> None:
        """Remove pairs, (pairs,) True."""
        if dropped.any():
            self.src, self.tgt = list(compress(self.src, ~dropped)), list(compress(self.tgt, ~dropped))
            self.places = self.places[~dropped]


def _bad_lines(block: Block) -> FilterReport:
    """Report on bad lines, with the message of each in place of the translation."""
    if not block.bad:
        return FilterReport()
    return FilterReport.of(BAD_LINE, [line.text for line in block.bad], [line.what for line in block.bad])
