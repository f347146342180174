"""The `[data.clean]` table of a study."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_data.filters.normalise import Form


@dataclass(frozen=True, kw_only=True)
class CleanConfig:
    """Which sentence pairs are trained on, and in what form."""

    normalisation: Form = "NFC"
    """Unicode form of all text: `NFC`, or `NFKC`, which also makes full-width and superscript forms plain."""

    identical: bool = True
    """Whether to drop pairs whose sides are equal: text that nobody translated."""

    max_characters: int = 2000
    """Most characters of a side; `DataConfig.max_length` bounds its tokens later."""

    max_ratio: float = 3.0
    """Most that one side may be longer than the other, as `lengths.length_ratios` counts; `inf` for no limit.

    Of 180,000 published translations into German, French and Chinese 3.0 drops 2 in 10,000, most of them
    wrong; of sentences put together at random, a third.
    """

    language_id: bool = False
    """Whether to drop pairs with a side that is taken for another language of the study, or for English."""

    language_odds: float = 20.0
    """How many times as likely as its own another language must be for a side to be taken for it.

    20 takes 6 in 10,000 published translations for another language, mostly names, code and what was left
    untranslated; of sides that are in another language it finds 63 to 99%, fewest where they are short.
    """

    near_duplicates: bool = False
    """Whether to drop pairs that differ from an earlier one in case, digits, punctuation and spaces only."""

    def __post_init__(self) -> None:
        if self.max_characters < 1:
            raise ValueError(f"`max_characters` must be at least 1, but is {self.max_characters}.")
        for name in ("max_ratio", "language_odds"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"`{name}` must be at least 1, but is {getattr(self, name)}.")
