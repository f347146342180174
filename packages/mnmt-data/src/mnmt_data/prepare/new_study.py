"""A new study of a corpus: `[data]` by the amount of text, its runs for a time on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnmt_data.errors import DataError, UserError
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import find_inputs
from mnmt_data.prepare.pipeline import prepare_study
from mnmt_data.readers import Block
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.store.remote import normal_url
from mnmt_data.study import NewRuns, StudyFile, new_runs_chooser, read_study
from mnmt_data.study.study_file import NAME

FEWEST_PAIRS = 1000
"""Fewest training pairs of a task, of which dev and test sets are taken too."""
SAMPLE = 3000
"""Pairs of each task that are prepared to measure training."""
VOCABULARIES = {300_000: 2000, 3_000_000: 8000, 10_000_000: 16_000}
"""{training pairs of all tasks: pieces of the vocabulary up to that number}."""
MOST_PIECES = 32_000
SHORT = 3600.0
"""Seconds up to which a study has small dev and test sets, short sentences, and a small vocabulary."""
BESIDES, BESIDES_SHARE = 120.0, 0.2
"""Seconds that preparing, scoring and the report take besides training, and a share of the time: at most half
of it is kept for them."""
PAIRS_A_SECOND = 1100
"""Pairs prepared a second, with the vocabulary, on two cores of an Intel Xeon (family 6, model 167) beside
other work: 54,604 took 48 seconds."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The text and the time of a new study."""

    name: str
    tasks: Sequence[str]
    corpus: Path
    minutes: float
    out: Path
    """The TOML file to write."""

    def __post_init__(self) -> None:
        """Check what takes no time.

        Raises:
            UserError: If the name or a task is none, the file is there, or no installed package chooses runs.
        """
        if not re.fullmatch(NAME, self.name):
            raise UserError(f"--name: must be a folder name such as 'en-de-small', but is {self.name!r}.")
        try:
            DataConfig(tasks=tuple(self.tasks), corpus=self.corpus)
        except ValueError as error:
            raise UserError(f"--tasks: {error}") from None
        if self.out.exists():
            raise DataError(f"{self.out}: is there already; remove it, or give another with --out.")
        if new_runs_chooser() is None:
            raise UserError(
                "a new study needs mnmt-model, which chooses its runs: pip install ./packages/mnmt-model"
            )


def write_new_study(wish: Wish, *, report: Callable[[str], None]) -> NewRuns:
    """Write a study that ends in advice within a time on this machine, and check it.

    Args:
        wish: The text and the time.
        report: Called with a line at each stage.

    Raises:
        DataError: If the corpus lacks a task or has too little text.
        UserError: If the time is too short.
    """
    choose = new_runs_chooser()
    assert choose is not None  # by `Wish`
    config = DataConfig(tasks=tuple(wish.tasks), corpus=wish.corpus)
    seconds, table = 60 * wish.minutes, {"tasks": list(wish.tasks), "corpus": normal_url(wish.corpus)}
    with TemporaryDirectory() as folder:
        report("counting the text")
        pairs = _write_sample(config, wish.corpus, Path(folder))
        training = _seconds_of_training(seconds, pairs)
        table |= _settings(pairs, seconds)
        report("preparing a sample of the text")
        sample = _sample_study(wish, table, Path(folder))
        data = prepare_study(sample, Path(folder), jobs=1)
        report("training a few steps on this machine, to measure it")
        shares = {task: min(1.0, SAMPLE / pairs[task]) for task in data.tasks}
        runs = choose(sample, data.folder, shares=shares, seconds=training)
    wish.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(wish.out) as file:
        file.write(_text(wish, table, runs).encode("utf-8"))
    read_study(wish.out)
    return runs


def _seconds_of_training(seconds: float, pairs: Mapping[str, int]) -> float:
    """Return what preparing, scoring and the report leave of the time."""
    preparing = sum(pairs.values()) / PAIRS_A_SECOND
    if preparing > seconds / 2:
        raise UserError(
            f"preparing {sum(pairs.values()):,} pairs takes about {preparing / 60:.1f} minutes; give "
            f"--minutes {4 * preparing / 60:.0f}, or less text."
        )
    return seconds - preparing - min(BESIDES + BESIDES_SHARE * seconds, (seconds - preparing) / 2)


def _write_sample(config: DataConfig, corpus: Path, folder: Path) -> dict[str, int]:
    """Write a part of each task's text as a corpus; return the training pairs of each task."""
    counts: dict[str, int] = {}
    inputs = find_inputs(config, corpus)
    for split, task in product(("train", "dev", "test"), config.tasks):
        sources = inputs.of(split, inputs.opposites.get((split, task), task))
        count, src, tgt = _sample(block for source in sources for block in source.reader.blocks())
        if (split, task) in inputs.opposites:
            src, tgt = tgt, src
        if split == "train" and count < FEWEST_PAIRS:
            has = f"has {count:,} training pairs of {task}"
            raise DataError(f"{normal_url(corpus)}: {has}; a study needs {FEWEST_PAIRS:,} of each task.")
        for side, lines in zip(task.split("-"), (src, tgt), strict=True) if count else ():
            with atomic_file(folder / f"{split}.{task}.{side}") as file:
                file.writelines(f"{line}\n".encode() for line in lines)
        counts |= {task: count} if split == "train" else {}
    return counts


def _sample(blocks: Iterable[Block]) -> tuple[int, list[str], list[str]]:
    """Return the number of all pairs, and pairs from all over the first blocks."""
    count, src, tgt = 0, list[str](), list[str]()
    for block in blocks:
        count += len(block.src)
        if len(src) < SAMPLE:
            step = max(1, len(block.src) // SAMPLE)
            src += block.src[::step]
            tgt += block.tgt[::step]
    return count, src[:SAMPLE], tgt[:SAMPLE]


def _settings(pairs: Mapping[str, int], seconds: float) -> dict[str, Any]:
    """Return the rest of `[data]` by the pairs of each task and the time."""
    total, least = sum(pairs.values()), min(pairs.values())
    size = next((size for most, size in VOCABULARIES.items() if total <= most), MOST_PIECES)
    if seconds > SHORT:
        return {"vocab": {"size": size}}
    test = min(200, least // 20)
    return {
        "max_length": 64,
        "dev_sentences": test,
        "test_sentences": test,
        "vocab": {"size": min(size, 4000)},
    }


def _sample_study(wish: Wish, table: Mapping[str, Any], folder: Path) -> StudyFile:
    tables = {"data": {**table, "corpus": str(folder)}}
    return StudyFile(path=Path(f"{wish.name}.toml"), name=wish.name, tables=tables)


def _text(wish: Wish, data: Mapping[str, Any], runs: NewRuns) -> str:
    sweep, goal = runs.tables["sweep"], {"importance": dict.fromkeys(wish.tasks, 1)}
    lines = [
        f"# {runs.count} models, in about {wish.minutes:g} minutes on the machine that wrote this study",
        f"name = {_toml(wish.name)}",
        f"data = {_toml(data)}",
        f"train = {_toml(runs.tables['train'])}",
        f'goal = {_toml(goal)} # how much the loss of each task counts; or {{ aim = "worst" }}',
    ]
    lines += ["", "[sweep.sizes]", *_entries(sweep["sizes"]), "", "[sweep.fit]", *_entries(sweep["fit"])]
    for grid in sweep["held_out"]:
        lines += ["", "[[sweep.held_out]] # which the laws must predict", *_entries(grid)]
    return "\n".join(lines) + "\n"


def _entries(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key} = {_toml(value)}" for key, value in table.items())


def _toml(value: Any) -> str:
    """Return a value in a line of TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_entries(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
