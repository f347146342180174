"""Warnings of `prepare` for good text, and for text whose sides are spoilt in a known way.

Claim: published text of any language pair has no warning, in the order of its files or shuffled, of 200 pairs
or more; text whose sides are swapped, shifted, in a wrong language or in another order has the one that
fits. Cited in docs/data/preparing.md.

A stretch of each task of the corpus folders (`train.SRC-TGT.*`) is spoilt in every way, and given to the
checks as a source of the study. Without `--corpora` only the made-up languages of the synthetic studies are
looked at, under codes of their own and under those of English and German, though `prepare` does not.

    python -m benchmarks.data.source_checks --corpora corpora/libreoffice-interface corpora/libreoffice-help
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measurement import Counts, Names, Out, print_table, provenance, run, write_report
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import Source
from mnmt_data.prepare.source_checks import SourceSample, source_warnings
from mnmt_data.readers.reader import Block
from mnmt_data.study import read_study
from mnmt_data.synthetic import write_synthetic_corpus

STUDIES = Path(__file__).parents[2] / "studies"
KINDS = {
    "swapped": "sides are swapped",
    "shifted": "sides are shifted",
    "unrelated": "no translations of each other",
    "foreign": "is in",
}
STRETCH = 72
OTHERS = ("fr", "ru", "zh", "fi")
"""Languages that text is said to be in while it is in another."""

Sides = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Given:
    """A source whose files only give their names."""

    paths: tuple[Path, ...] = (Path("train"),)

    def blocks(self, **_: Any) -> Iterator[Block]:
        """Yield nothing: the blocks are made here."""
        return iter(())


def main(
    *, corpora: Names = (), sizes: Counts = (200, 1000), tasks: int = 60, seed: int = 1, out: Out = None
) -> None:
    """Print how many texts have a warning of each kind.

    Args:
        corpora: Corpus folders.
        sizes: Pairs of each text.
        tasks: Most tasks of each folder.
        seed: Seed of the choice.
        out: JSON file for the figures.
    """
    rows = []
    with TemporaryDirectory() as folder:
        all_texts = {
            **dict(_published(corpora, tasks, max(sizes), seed)),
            "synthetic": _synthetic(Path(folder)),
        }
        for name, texts in all_texts.items():
            for size in sizes:
                rows += _measure(name, size, [text for text in texts if len(text[1][0]) >= size], seed)
    print_table(rows)
    write_report(out, "warnings of sources", {"results": rows}, provenance("mnmt-data"))


def _published(
    corpora: Names, tasks: int, size: int, seed: int
) -> Iterator[tuple[str, list[tuple[str, Sides]]]]:
    """Yield each folder's name with (task, sides) of some of its tasks that have enough pairs."""
    for folder in map(Path, corpora):
        names = sorted({path.name.split(".")[1] for path in folder.glob("train.*-*.*")})
        random.Random(seed).shuffle(names)
        texts = ((task, _read(folder, task)) for task in names)
        yield folder.name, list(islice((text for text in texts if len(text[1][0]) >= size), tasks))


def _synthetic(folder: Path) -> list[tuple[str, Sides]]:
    """Return (task, sides) of the synthetic studies, each under two names."""
    texts = []
    for study in sorted(STUDIES.glob("*.toml")):
        config = read_study(study).section("data", DataConfig)
        if config.synthetic is not None:
            write_synthetic_corpus(replace(config.synthetic, train_sentences=2000), folder / study.stem)
            sides = _read(folder / study.stem, config.tasks[0])
            texts += [(config.tasks[0], sides), ("en-de", sides)]
    return texts


def _read(folder: Path, task: str) -> Sides:
    src, tgt = task.split("-")
    paths = (folder / f"train.{task}.{code}" for code in (src, tgt))
    first, second = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in paths)
    return first, second


def _measure(name: str, size: int, texts: list[tuple[str, Sides]], seed: int) -> list[dict[str, Any]]:
    """Count the texts that have a warning of each kind, by how they are spoilt."""
    counts: dict[str, Counter[str]] = {}
    draw, started, checked = random.Random(seed), time.perf_counter(), 0
    for task, (src, tgt) in texts:
        start = draw.randrange(len(src) - size + 1)
        rows = slice(start, start + size)
        for how, (name_of_task, sides) in _spoilt(task, (src[rows], tgt[rows]), draw).items():
            if name == "synthetic" and how not in ("good", "shuffled"):
                continue
            kinds = set(_warnings(name_of_task, sides))
            counts.setdefault(how, Counter()).update(kinds or {"none"})
            counts[how]["texts"] += 1
            checked += 1
    seconds = round((time.perf_counter() - started) / max(checked, 1), 2)
    columns = ("texts", "none", *KINDS)
    return [
        {"corpus": name, "pairs": size, "text": how, **{kind: count[kind] for kind in columns}, "s": seconds}
        for how, count in counts.items()
    ]


def _spoilt(task: str, sides: Sides, draw: random.Random) -> dict[str, tuple[str, Sides]]:
    """Return {how: (the task that the text is said to be of, its sides)}."""
    src, tgt = sides
    half, third = len(src) // 2, len(src) // 3
    broken, end = [*src[:third], "half of it", *src[third:]], min(third + STRETCH, len(src))
    order = draw.sample(range(len(src)), len(src))
    code, other = task.split("-")
    wrong = next(one for one in OTHERS if one[:2] not in (code[:2], other[:2]))
    return {
        "good": (task, sides),
        "shuffled": (task, ([src[row] for row in order], [tgt[row] for row in order])),
        "swapped": (task, (tgt, src)),
        "source lacks line 1": (task, (src[1:], tgt[:-1])),
        "target lacks the middle line": (task, (src[:-1], [*tgt[:half], *tgt[half + 1 :]])),
        f"a stretch of {STRETCH}": (task, ([*broken[:end], *src[end:]], tgt)),
        "target in another language": (f"{code}-{wrong}", sides),
        "sources sorted": (task, (sorted(src), tgt)),
    }


def _warnings(task: str, sides: Sides) -> Iterator[str]:
    source = Source(split="train", task=task, number=0, reader=Given())
    sample = SourceSample.of(Block(src=sides[0], tgt=sides[1], first=0), task)
    for line in source_warnings(source, [sample]):
        yield next(kind for kind, words in KINDS.items() if re.search(words, line))


if __name__ == "__main__":
    run(main, smoke={"sizes": (200,)})
