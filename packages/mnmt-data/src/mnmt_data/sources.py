"""The text a study is made of: read, cleaned and split."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mnmt_data.clean import clean
from mnmt_data.config import DataConfig
from mnmt_data.corpus import Bitext, bitext_paths, has_bitext, read_bitext
from mnmt_data.errors import DataError
from mnmt_data.split import Splits, carve, disjoint, sample, shared_language

CARVED = ("dev", "test")
DESCRIPTION = "corpus.json"


@dataclass(frozen=True, kw_only=True)
class Text:
    """Everything a study trains and tests on, as text."""

    splits: Splits
    dropped: Mapping[str, Mapping[str, int]]
    """{task: {filter: pairs it dropped from the training text}}."""
    irreducible: Mapping[str, float]
    """{task: nats per token}, where the corpus says so."""


def read_text(config: DataConfig, corpus: Path) -> Text:
    """Reads the splits of `corpus` and the test corpora; dev and test sets it lacks are taken out of train.

    A corpus that states its irreducible losses was made, not collected: it is taken as it is. In any other,
    no sentence of a dev or test set, of any task and on either side, stays in the training text.

    Raises:
        DataError: if a file is missing, broken or too small.
    """
    irreducible = _irreducible(corpus, config.tasks)
    if irreducible:
        made = {split: _read(corpus, split, config.tasks) for split in ("train", *CARVED)}
        return Text(splits=made, dropped={task: {} for task in config.tasks}, irreducible=irreducible)
    cleaned = {task: clean(bitext) for task, bitext in _read(corpus, "train", config.tasks).items()}
    train = {task: kept for task, (kept, _) in cleaned.items()}
    splits = disjoint({**_carved(config, corpus, train), **_tests(config)})
    dropped = {
        task: {**counts, "held out": len(kept) - len(splits["train"][task])}
        for task, (kept, counts) in cleaned.items()
    }
    return Text(splits=splits, dropped=dropped, irreducible={})


def _read(corpus: Path, split: str, tasks: tuple[str, ...]) -> dict[str, Bitext]:
    return {task: read_bitext(corpus, split, task) for task in tasks}


def checksum(config: DataConfig, corpus: Path) -> str:
    """SHA-256 over the contents of every file `read_text` would read."""
    total = sha256()
    folders = {**dict.fromkeys(("train", *CARVED), corpus), **config.test_corpora}
    for split, folder in folders.items():
        for task in config.tasks:
            for path in bitext_paths(folder, split, task):
                if path.is_file():
                    total.update(f"{split} {path.name} ".encode())
                    with path.open("rb") as file:
                        while block := file.read(1 << 20):
                            total.update(block)
    return total.hexdigest()


def _carved(config: DataConfig, corpus: Path, train: Mapping[str, Bitext]) -> Splits:
    sizes = {"dev": config.dev_sentences, "test": config.test_sentences}
    splits: Splits = {"train": {}, "dev": {}, "test": {}}
    for task, bitext in train.items():
        missing = {split: size for split, size in sizes.items() if not has_bitext(corpus, split, task)}
        _check_size(bitext, missing, bitext_paths(corpus, "train", task)[0])
        given = {split: read_bitext(corpus, split, task) for split in CARVED if split not in missing}
        carved = carve(bitext, missing, keys=_keys(config, task, bitext), seed=config.seed)
        for split, pairs in {**given, **carved}.items():
            splits[split][task] = pairs
    return splits


def _keys(config: DataConfig, task: str, bitext: Bitext) -> list[str]:
    """The side in the language that the tasks share, else the source: it decides which pairs are held out."""
    return bitext.tgt if task.split("-")[1] == shared_language(config.tasks) else bitext.src


def _check_size(bitext: Bitext, sizes: Mapping[str, int], path: Path) -> None:
    if len(bitext) <= sum(sizes.values()):
        sets = " and ".join(f"`{split}_sentences` ({size})" for split, size in sizes.items()) or "training"
        raise DataError(f"{path}: has {len(bitext)} usable pairs, too few for {sets}; give more text.")


def _tests(config: DataConfig) -> Splits:
    """Out-of-domain test sets; a test corpus need not have every task, but must have one."""
    tests: Splits = {}
    for name, folder in config.test_corpora.items():
        tasks = [task for task in config.tasks if has_bitext(folder, name, task)]
        if not tasks:
            wanted = bitext_paths(folder, name, config.tasks[0])[0]
            raise DataError(f"{wanted}: no such file; the test corpus {name!r} needs one of the tasks.")
        bitexts = _read(folder, name, tuple(tasks))
        tests[name] = {
            task: sample(bitext, config.test_sentences, keys=_keys(config, task, bitext), seed=config.seed)
            for task, bitext in bitexts.items()
        }
    return tests


def _irreducible(corpus: Path, tasks: tuple[str, ...]) -> dict[str, float]:
    path = corpus / DESCRIPTION
    if not path.is_file():
        return {}
    try:
        stated = json.loads(path.read_text(encoding="utf-8")).get("irreducible", {})
        return {task: float(stated[task]) for task in tasks if task in stated}
    except (ValueError, AttributeError, TypeError):
        raise DataError(f"{path}: not the description of a corpus; mend or remove it.") from None
