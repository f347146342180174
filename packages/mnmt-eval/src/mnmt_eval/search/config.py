"""How to search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mnmt_eval.errors import EvalError
from mnmt_eval.search.length import LengthPenalty, MaxLength
from mnmt_eval.search.sampling_config import Sampling

_CHOICES = {"early_stopping": ("exact", "filled"), "cache": ("flat", "reorder")}


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How to search for translations.

    Raises:
        EvalError: If a field is out of its range, or contradicts another.
    """

    beam: int = 1
    """Hypotheses kept at a time; 1 is greedy search."""

    n_best: int = 1
    """Hypotheses to return of each sentence, at most `beam`; with `sampling`, how many to draw."""

    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    """How hypotheses of different lengths are compared."""

    max_length: MaxLength = field(default_factory=MaxLength)
    """Where hypotheses are cut off."""

    min_length: int = 0
    """Fewest tokens of a hypothesis, `</s>` included."""

    no_repeat_ngram: int = 0
    """Length of the n-grams that no hypothesis may hold twice; 0 allows all."""

    early_stopping: Literal["exact", "filled"] = "exact"
    """When a sentence is done: `exact` when no live hypothesis can enter the n-best any more, which changes
    nothing of what is found; `filled` as soon as `beam` hypotheses have ended, as most toolkits do."""

    cache: Literal["flat", "reorder"] = "flat"
    """How beam search keeps keys and values: `flat` never moves them, where the model offers that; `reorder`
    copies them when hypotheses branch. Both find the same."""

    sampling: Sampling | None = None
    """Draw translations in place of searching for the best."""

    def __post_init__(self) -> None:
        for name, least in {"beam": 1, "n_best": 1, "min_length": 0, "no_repeat_ngram": 0}.items():
            if getattr(self, name) < least:
                raise EvalError(f"`{name}` must be at least {least}, but is {getattr(self, name)}.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise EvalError(f"`{name}` must be {' or '.join(choices)}, but is {getattr(self, name)!r}.")
        if self.sampling and self.beam != 1:
            raise EvalError(f"`beam` must be 1 with `sampling`, but is {self.beam}.")
        if not self.sampling and self.n_best > self.beam:
            raise EvalError(f"`n_best` must be at most `beam` ({self.beam}), but is {self.n_best}.")

    @property
    def signature(self) -> str:
        """All that changes which translation is best, in a few letters, such as beam, penalty and lengths."""
        parts = {
            "beam": None if self.sampling else self.beam,
            "sample": self.sampling,
            "of": self.n_best if self.sampling and self.n_best > 1 else None,
            "lp": self.length_penalty if self.beam > 1 or self.n_best > 1 else None,
            "stop": self.early_stopping if self.beam > 1 else None,
            "maxlen": self.max_length,
            "minlen": self.min_length or None,
            "norepeat": self.no_repeat_ngram or None,
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)
