"""Pairs a second through the search for copies of dev and test sentences, beside cleaning.

Claim: the search takes less than twice as long as cleaning. Cited in docs/data/preparing.md.

A corpus folder's text is cleaned, and looked through for the sentences of dev and test sets of all tasks,
which were taken out of it, block by block, in turns, on one core. Without `--corpus` the text is made up.
Rates are of processor time, which does not count what other processes take.

    tasks="en-fr en-ru en-es"; out=benchmarks/results/data/leak_rate.json
    python -m benchmarks.data.leak_rate --corpus corpora/gettext --tasks $tasks --out $out
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.data.leaks import write_corpus
from benchmarks.measurement import Figures, Names, Out, print_table, provenance, ratios, run, write_report
from mnmt_data.filters import CleanBlock, CleanConfig, Cleaner, LeakConfig, LeakFinder, clean_block
from mnmt_data.readers.reader import Block


def main(
    *,
    corpus: Path | None = None,
    tasks: Names = ("en-de",),
    pairs: int = 20_000,
    held_out: int = 500,
    rounds: int = 7,
    out: Out = None,
) -> None:
    """Print a row for each task.

    Args:
        corpus: A folder with training text, train.TASK.LANGUAGE.
        tasks: Its tasks.
        pairs: Pairs of each task that are looked through.
        held_out: Pairs of each of a task's dev and test sets.
        rounds: Turns of each.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as folder:
        text = corpus or write_corpus(Path(folder) / "corpus", pairs + 2 * held_out)
        blocks = {task: read_block(text, task, pairs + 2 * held_out) for task in tasks}
    sets = {
        name: lines for task, block in blocks.items() for name, lines in held_out_sets(task, block, held_out)
    }
    finder = LeakFinder(sets, LeakConfig())
    rows = [measure(task, block, finder, rounds) for task, block in blocks.items()]
    print_table(rows)
    sizes = {"sentences": sum(map(len, sets.values())), "sets": len(sets)}
    what = "the search for copies of dev and test sentences beside cleaning"
    write_report(out, what, {**sizes, "results": rows}, provenance("mnmt-data", "numpy"))


def read_block(corpus: Path, task: str, pairs: int) -> Block:
    """Read the first pairs of a task."""
    sides = []
    for language in task.split("-"):
        with (corpus / f"train.{task}.{language}").open(encoding="utf-8") as file:
            sides.append([line.rstrip("\n") for line in islice(file, pairs)])
    return Block(first=0, src=sides[0], tgt=sides[1], origins=None)


def held_out_sets(task: str, block: Block, size: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the sentences of either side of a dev and a test set, taken from all over the text."""
    step = max(1, len(block.src) // (2 * size))
    for number, split in enumerate(("dev", "test")):
        rows = slice(number * step, None, 2 * step)
        yield f"{split} {task}", sorted({*block.src[rows][:size], *block.tgt[rows][:size]})


def measure(task: str, block: Block, finder: LeakFinder, rounds: int) -> Figures:
    """Clean and look through the text of a task, in turns."""
    cleaner = Cleaner(CleanConfig(), task)
    cleaned: CleanBlock = clean_block(block, cleaner)
    turns = [
        (
            processor_time(lambda: clean_block(block, cleaner)),
            processor_time(lambda: finder.find(cleaned.src, cleaned.tgt)),
        )
        for _ in range(rounds)
    ]
    cleaning, search = zip(*turns, strict=True)
    copies = finder.find(cleaned.src, cleaned.tgt).any(axis=(1, 2))
    return {
        "task": task,
        "pairs": len(cleaned),
        "characters of a pair": round(sum(map(len, [*cleaned.src, *cleaned.tgt])) / len(cleaned)),
        "copies": int(copies.sum()),
        "cleaning, pairs/s": round(len(block.src) / median(cleaning)),
        "search, pairs/s": round(len(cleaned) / median(search)),
        "search to cleaning": ratios(search, cleaning),
    }


def processor_time(call: Callable[[], object]) -> float:
    """Return the seconds of processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    run(main, smoke={"pairs": 500, "held_out": 20, "rounds": 1})
