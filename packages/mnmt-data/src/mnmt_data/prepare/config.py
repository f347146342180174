"""The `[data]` section of a study."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, Literal

from mnmt_data.errors import DataError
from mnmt_data.filters import CleanConfig, LeakConfig
from mnmt_data.filters.report import BUILT_IN
from mnmt_data.readers.language_codes import canonical_task, check_code
from mnmt_data.store.direction import TargetTag
from mnmt_data.store.vocabulary import MOST_IDS, Kind
from mnmt_data.study import Ranges, check_ranges
from mnmt_data.synthetic import ContextsConfig, SyntheticConfig

DEV_AND_TEST = ("dev", "test")
"""Sets that are sampled from the training text unless they are given."""


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """The shared vocabulary."""

    RANGES: ClassVar[Ranges] = {
        f"[8, {MOST_IDS}]": ("size",),
        "[1, inf]": ("temperature",),
        "[1, 1e9]": ("sentences",),
        "[0.9, 1]": ("character_coverage",),
    }

    kind: Kind = "unigram"
    """`unigram`, `bpe`, or `word`: every token between spaces is a piece."""

    size: int = 8000
    """Most ids, special ones and tags included; fewer if the text has fewer pieces."""

    path: Path | None = None
    """An existing vocabulary to use, as fine-tuning must; `kind` and `size` then have no effect."""

    temperature: float = 5.0
    """T: sentences are sampled from each language in proportion to (its training sentences)^(1/T). 1 keeps
    the shares of the languages, larger values even them out (Arivazhagan et al. 2019). Text that both
    directions share counts once."""

    sentences: int = 400_000
    """Sentences the vocabulary is learned from, at most all of the training text; several million for
    128,000 pieces. They are held in memory."""

    byte_fallback: bool = True
    """Whether a character too rare for a piece is spelled in bytes, and not unknown. Not for `word`."""

    character_coverage: float = 0.9995
    """Share of the text's characters that must be pieces. Not for `word`, which takes all."""

    def __post_init__(self) -> None:
        check_ranges(self, beyond="ten times the largest that was published")


@dataclass(frozen=True, kw_only=True)
class PairScoreConfig:
    """A score that another tool gave each training pair: the higher, the better."""

    RANGES: ClassVar[Ranges] = {"(-inf, inf)": ("min",), "[1, inf)": ("column",)}

    min: float | None = None
    """Lowest score of a pair that is trained on."""

    column: int | str = ""
    """Name or number, from 1, of its column in tables; by default the name of the score."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The text of a study, its splits and its tokens."""

    RANGES: ClassVar[Ranges] = {
        "[1, 1e9]": ("dev_sentences", "test_sentences"),
        "[1, 1e6]": ("max_length",),
        "[0, 1]": ("max_bad_share",),
        "[0, inf)": ("seed",),
    }

    tasks: tuple[str, ...]
    """Language pairs, such as `en-de`; each adds training data and test sets. A code may have a script or a
    region: `en-zh_Hans`, `en-es_419`; with a hyphen in place of `_` it is the same."""

    zero_shot: tuple[str, ...] = ()
    """Language pairs that are evaluated and never trained on. Their training text is used only to sample dev
    and test sets that are not given."""

    corpus: Path | None = None
    """Corpus folder; may be given with `files` below."""

    files: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """{train, dev, test or another test set: {task: (source, ...)}}. A source is a file of any known format,
    or a pattern with `{lang}` for the two text files of a pair."""

    columns: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """{file name of a table, `*` for any part: {name to give: number, from 1, or own name of a column}}.
    Names are as in a header: codes of languages, `src` and `tgt`, or scores."""

    synthetic: SyntheticConfig | ContextsConfig | None = None
    """Languages to make up instead of text; `kind` says which."""

    test_corpora: Mapping[str, Path] = field(default_factory=dict)
    """{test set: corpus folder} of out-of-domain test sets."""

    dev_sentences: int = 1000
    """Sentences of each task's dev set, where no text is given for it."""

    test_sentences: int = 2000
    """Sentences of each task's test set, where no text is given for it; also the most taken from a test
    corpus."""

    max_length: int = 128
    """Most tokens of a side, tag and `</s>` included; longer training pairs are dropped. Pairs that train
    both directions must fit in both."""

    target_tag: TargetTag = "prepended"
    """Whether the target tag begins the source or stands before its `</s>`; `none` is for source languages
    that are translated into one language each."""

    seed: int = 1
    """Seed of the split."""

    on_bad_line: Literal["error", "skip"] = "error"
    """Whether to stop at a line of training text that is not a pair (not UTF-8, no tab, not JSON), or to skip
    and count it. Dev and test sets are always read strictly; truncated files and files of unequal length are
    always errors."""

    max_bad_share: float = 0.01
    """Largest share of the lines of a source that may be skipped."""

    scores: Mapping[str, PairScoreConfig] = field(default_factory=dict)
    """{score: where it is, and its threshold}, of training pairs: a column of each table, or a file with a
    number a line beside each text, `train.en-de.NAME` beside `train.en-de.en`."""

    clean: CleanConfig = field(default_factory=CleanConfig)
    """Filters of the training text."""

    leaks: LeakConfig = field(default_factory=LeakConfig)
    """Rules for dropping training pairs that are copies of dev or test sentences."""

    vocab: VocabConfig = field(default_factory=VocabConfig)
    """The shared vocabulary."""

    def __post_init__(self) -> None:
        for name in ("tasks", "zero_shot"):
            object.__setattr__(self, name, tuple(map(canonical_task, getattr(self, name))))
        object.__setattr__(self, "files", {name: _by_task(name, tasks) for name, tasks in self.files.items()})
        self._check_tasks()
        self._check_target_tag()
        self._check_vocabulary()
        if self.synthetic is None and self.corpus is None and not self.files:
            raise ValueError("`corpus`, `files` or `synthetic` must be given.")
        if self.synthetic is not None and (self.corpus is not None or self.files):
            raise ValueError("`synthetic` must not be given together with `corpus` or `files`.")
        check_ranges(self)
        self._check_scores()
        self._check_test_sets()
        self._check_files()

    def _check_tasks(self) -> None:
        for name, tasks in (("tasks", self.tasks), ("zero_shot", self.zero_shot)):
            for task in tasks:
                _check_task(name, task, is_made_up=self.synthetic is not None)
            if self.synthetic is not None and not set(tasks) <= set(self.synthetic.tasks):
                valid = ", ".join(self.synthetic.tasks)
                raise ValueError(f"`{name}` must be among those the languages make ({valid}).")
        if not self.tasks or len(set(self.tasks)) != len(self.tasks):
            raise ValueError("`tasks` must name at least one task, each once.")
        if trained := sorted(set(self.zero_shot) & set(self.tasks)):
            raise ValueError(f"`zero_shot` must not name what is trained on, but {trained[0]} is of `tasks`.")
        if len(set(self.zero_shot)) != len(self.zero_shot):
            raise ValueError("`zero_shot` must name each task once.")

    def _check_target_tag(self) -> None:
        targets: dict[str, list[str]] = {}
        for task in self.evaluated if self.target_tag == "none" else ():
            src, tgt = task.split("-")
            targets.setdefault(src, []).append(tgt)
        for src, languages in targets.items():
            if len(languages) > 1:
                several = ", ".join(languages)
                raise ValueError(f"`target_tag` must not be none where {src} is translated into {several}.")

    def _check_scores(self) -> None:
        for name in self.scores:
            if not re.fullmatch(r"\w[\w-]*", name, re.ASCII):
                raise ValueError(f"`scores` must be letters, digits, `_` and `-`, but one is {name!r}.")
            if name in BUILT_IN:
                raise ValueError(f"`scores` must not be named as a filter is, but one is {name!r}.")
        if self.scores and self.synthetic is not None:
            raise ValueError("`scores` must not be given together with `synthetic`.")

    def _check_test_sets(self) -> None:
        for name in self.test_corpora:
            if not re.fullmatch(r"\w+", name, re.ASCII) or name in ("train", *DEV_AND_TEST):
                raise ValueError(f"`test_corpora` must not be named train, dev or test, but one is {name!r}.")
            if name in self.files:
                raise ValueError(f"`files` and `test_corpora` must not both give a test set {name!r}.")

    def _check_files(self) -> None:
        for name, tasks in self.files.items():
            if not re.fullmatch(r"\w+", name, re.ASCII):
                raise ValueError(f"`files` must be for test sets of letters and digits, but one is {name!r}.")
            if name != (meant := _meant_split(name)):
                raise ValueError(
                    f"`files.{name}` is no test set by its name; call it `{meant}`, or otherwise."
                )
            if unknown := sorted(tasks.keys() - set(self.evaluated)):
                valid = ", ".join(self.evaluated)
                raise ValueError(
                    f"`files.{name}` must be of the tasks ({valid}), but one is of {unknown[0]!r}."
                )
            if empty := [task for task, sources in tasks.items() if not sources]:
                raise ValueError(f"`files.{name}.{empty[0]}` must name at least one source.")

    def _check_vocabulary(self) -> None:
        """Refuse a vocabulary without a piece besides special ids, tags, and bytes."""
        vocab, tags = self.vocab, len(self.target_languages)
        count = 256 if vocab.byte_fallback and vocab.kind != "word" else 0
        if vocab.path is None and vocab.size <= 3 + tags + count:
            what = f"3 special ids, {tags} tags" + (f" and {count} bytes of `byte_fallback`" if count else "")
            raise ValueError(
                f"`vocab.size` must be above {3 + tags + count}, the {what}, but is {vocab.size}."
            )

    @property
    def min_scores(self) -> dict[str, float]:
        """{score: its threshold}, without scores that have no threshold."""
        return {name: score.min for name, score in self.scores.items() if score.min is not None}

    @property
    def evaluated(self) -> tuple[str, ...]:
        """All tasks with dev and test sets: the trained ones, then the zero-shot ones."""
        return self.tasks + self.zero_shot

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, including those of zero-shot tasks."""
        return tuple(dict.fromkeys(language for task in self.evaluated for language in task.split("-")))

    @property
    def target_languages(self) -> tuple[str, ...]:
        """Target languages in the order of the tasks, zero-shot tasks last."""
        return tuple(dict.fromkeys(task.split("-")[1] for task in self.evaluated))


def _check_task(key: str, task: str, *, is_made_up: bool) -> None:
    if not re.fullmatch(r"([A-Za-z_]\w*)-(?!\1$)[A-Za-z_]\w*", task, re.ASCII):
        raise ValueError(f"`{key}` must be language pairs such as 'en-de', but one is {task!r}.")
    for code in () if is_made_up else task.split("-"):
        try:
            check_code(code)
        except DataError as error:
            raise ValueError(f"`{key}`: {error}") from None


def _meant_split(name: str) -> str:
    """Return the split that a name of `files` seems to mean: train, dev or test; else the name itself."""
    lower = name.lower()
    if lower.startswith("train") or get_close_matches(lower, ["train"], cutoff=0.75):
        return "train"
    if lower in ("val", "valid", "validation"):
        return "dev"
    return next((split for split in DEV_AND_TEST if sorted(split) == sorted(lower)), name)


def _by_task(name: str, sources: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return {task in its canonical spelling: its sources}, of a table of `files`."""
    by_task = {canonical_task(task): of_task for task, of_task in sources.items()}
    if len(by_task) < len(sources):
        twice = next(task for task in sources if canonical_task(task) != task)
        raise ValueError(f"`files.{name}` names {canonical_task(twice)} in two spellings; keep one.")
    return by_task
