"""The `[data]` section of a study."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mnmt_data.synthetic import SyntheticConfig
from mnmt_data.vocab import Kind


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """The shared vocabulary."""

    kind: Kind = "unigram"
    """`unigram`, `bpe`, or `word`: every token between spaces is a piece."""

    size: int = 8000
    """Ids, special ones and tags included; fewer where the text has no more pieces."""

    def __post_init__(self) -> None:
        if self.size < 8:
            raise ValueError(f"`size` must be at least 8, but is {self.size}.")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the text comes from, and how it is split and tokenised."""

    tasks: tuple[str, ...]
    """Language pairs, such as `en-de`; each adds training data and test sets."""

    corpus: Path | None = None
    """Corpus folder; or `synthetic` below."""

    synthetic: SyntheticConfig | None = None
    """Languages to make up instead of a corpus."""

    test_corpora: Mapping[str, Path] = field(default_factory=dict)
    """{test set: corpus folder} of out-of-domain test sets."""

    dev_sentences: int = 1000
    """Sentences of each task's dev set, where the corpus has none."""

    test_sentences: int = 2000
    """Sentences of each task's test set, where the corpus has none, and the most taken from a test corpus."""

    max_length: int = 128
    """Most tokens of a side, tag and `</s>` included; longer training pairs are left out."""

    seed: int = 1
    """Of the split."""

    vocab: VocabConfig = field(default_factory=VocabConfig)
    """The shared vocabulary."""

    def __post_init__(self) -> None:
        for task in self.tasks:
            if not re.fullmatch(r"([A-Za-z_]+)-(?!\1$)[A-Za-z_]+", task):
                raise ValueError(f"`tasks` must be language pairs such as 'en-de', but one is {task!r}.")
        if not self.tasks or len(set(self.tasks)) != len(self.tasks):
            raise ValueError("`tasks` must name at least one task, each once.")
        if (self.corpus is None) == (self.synthetic is None):
            raise ValueError("`corpus` or `synthetic` must be given, and not both.")
        for name in ("dev_sentences", "test_sentences", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {getattr(self, name)}.")
        self._check_names()

    def _check_names(self) -> None:
        for name in self.test_corpora:
            if not re.fullmatch(r"[A-Za-z0-9_]+", name) or name in ("train", "dev", "test"):
                raise ValueError(f"`test_corpora` must not be named train, dev or test, but one is {name!r}.")
        if self.synthetic is not None and not set(self.tasks) <= set(self.synthetic.tasks):
            made = ", ".join(self.synthetic.tasks)
            raise ValueError(f"`tasks` must be among those the languages make ({made}).")

    @property
    def target_languages(self) -> tuple[str, ...]:
        """Languages translated into, in the order of the tasks."""
        return tuple(dict.fromkeys(task.split("-")[1] for task in self.tasks))
