"""Copies of dev and test sentences that prepared training data still hold, counted by other code than ours.

Claim: nothing leaks. No training pair has a sentence of any dev or test set on either side, nor one that
differs from it in case, digits and punctuation only, nor most of its n-grams. Cited in
docs/data/preparing.md.

The shards are read back to text with pyarrow and SentencePiece, and compared with the text of the dev and
test sets by Python's sets and dictionaries; nothing of mnmt_data is imported. `--data` names prepared data.
Without it a corpus folder is prepared twice in processes of their own, with the rules for near copies and
without them; without `--corpus`, too, that of made-up text with copies planted in it.

    python -m benchmarks.data.leaks --corpus corpora/libreoffice-help --out benchmarks/results/data/leaks.json
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import sentencepiece as spm

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report

STUDY = """
name = "leaks"
[data]
tasks = {tasks}
corpus = "{corpus}"
dev_sentences = {held_out}
test_sentences = {held_out}
[data.vocab]
size = {size}
{leaks}
"""
OFF = "[data.leaks]\nnormal_form = false\nngrams = false"
NO_SPACES = ("CJK ", "HIRAGANA ", "KATAKANA ", "HANGUL ", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ")

Pair = tuple[str, str]
Words = tuple[str, ...]


def main(
    *,
    data: Names = (),
    corpus: Path | None = None,
    tasks: Names = ("en-de",),
    held_out: int = 1000,
    vocab_size: int = 8000,
    pairs: int = 20_000,
    out: Out = None,
) -> None:
    """Print the copies in prepared data, and fail if there are any where the rules are in use.

    Args:
        data: Folders of prepared data to look at.
        corpus: A corpus folder to prepare, where `data` is not given.
        tasks: Its tasks.
        held_out: Sentences of each dev and test set taken from it.
        vocab_size: Tokens of its vocabulary.
        pairs: Pairs of made-up text, where `corpus` is not given either.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as folder:
        if data:
            rows = [count_copies(Path(name)) for name in data]
        else:
            text = corpus or write_corpus(Path(folder) / "corpus", pairs)
            settings = {"tasks": json.dumps(list(tasks)), "held_out": held_out, "size": vocab_size}
            rows = [
                count_copies(prepare(Path(folder), text.absolute(), leaks, settings)) for leaks in (OFF, "")
            ]
    print_table(rows)
    write_report(
        out, "copies of dev and test sentences in training data", {"results": rows}, provenance("mnmt-data")
    )
    if any(row["rules"] and row[kind] for row in rows for kind in ("exact", "normal form", "n-grams")):
        raise SystemExit("Training data hold copies of dev or test sentences.")


def prepare(folder: Path, corpus: Path, leaks: str, settings: dict[str, object]) -> Path:
    """Prepare a corpus in a process of its own; return the folder of the data."""
    study, out = folder / "study.toml", folder / f"out{bool(leaks)}"
    study.write_text(STUDY.format(corpus=corpus, leaks=leaks, **settings), encoding="utf-8")
    command = [sys.executable, "-m", "mnmt_data", "prepare", study, "--out", out]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out / "data"


def count_copies(folder: Path) -> Figures:
    """Count the training pairs that are copies by each rule, and the test pairs of which there are any."""
    description = json.loads((folder / "prepared.json").read_text(encoding="utf-8"))
    config = description["config"]["leaks"]
    held_out = {pair for task in tasks_of(description) for pair in held_out_pairs(folder, task)}
    sentences = {side for pair in held_out for side in pair}
    forms = {letters(side) for side in sentences} - {""}
    overlaps = Overlaps(sentences, config["ngram_words"], config["min_words"], config["share"])
    counts: Counter[str] = Counter()
    train_forms: set[str] = set()
    short = {words(side) for side in sentences if len(words(side)) < config["min_words"]} - {()}
    inside: set[Words] = set()
    for pair in train_pairs(folder, description["tasks"]):
        train_forms.update(map(letters, pair))
        for n in range(1, config["min_words"]):
            inside |= short.intersection(chain.from_iterable(ngrams(words(side), n) for side in pair))
        counts["pairs"] += 1
        counts["exact"] += any(side in sentences for side in pair)
        counts["normal form"] += any(letters(side) in forms for side in pair)
        counts["n-grams"] += any(map(overlaps.has_copy, pair))
    return {
        "rules": config["normal_form"] and config["ngrams"],
        "training pairs": counts["pairs"],
        "dev and test pairs": len(held_out),
        **{rule: counts[rule] for rule in ("exact", "normal form", "n-grams")},
        "short sentences": len(short),
        "whole in training": len(inside),
        "both sides in training": sum({*map(letters, pair)} <= train_forms - {""} for pair in held_out),
    }


class Overlaps:
    """The n-grams of some sentences, as tuples of words."""

    def __init__(self, sentences: set[str], n: int, min_words: int, share: float) -> None:
        self.n, self.share = n, share
        self.owners: dict[Words, list[int]] = defaultdict(list)
        self.sizes: list[int] = []
        for sentence in sentences:
            grams = set(ngrams(words(sentence), n)) if len(words(sentence)) >= min_words else set()
            for gram in grams:
                self.owners[gram].append(len(self.sizes))
            self.sizes.append(len(grams))

    def has_copy(self, text: str) -> bool:
        """Return whether a text has the share of the n-grams of one of the sentences."""
        grams = set(ngrams(words(text), self.n)) & self.owners.keys()
        common = Counter(number for gram in grams for number in self.owners[gram])
        return any(count / self.sizes[number] >= self.share for number, count in common.items())


def ngrams(sequence: Words, n: int) -> Iterator[Words]:
    """Yield every stretch of `n` words."""
    return (sequence[start : start + n] for start in range(len(sequence) - n + 1))


def words(text: str) -> Words:
    """Return stretches of letters, without case; where a script has no spaces, letters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return tuple("".join(map(_spaced, folded)).split())


def letters(text: str) -> str:
    """Return the letters of a text without case, which near copies have in common."""
    return "".join(words(text))


@cache
def _spaced(character: str) -> str:
    """Return a letter, between spaces if it is a word by itself, or a space in place of any other."""
    if unicodedata.category(character)[0] not in "LM":
        return " "
    is_word = unicodedata.east_asian_width(character) in "WF"
    is_word |= unicodedata.name(character, "").startswith(NO_SPACES)
    return f" {character} " if is_word else character


def tasks_of(description: Figures) -> list[str]:
    """Return all tasks with dev and test sets."""
    return [*description["tasks"], *description["zero_shot"]]


def held_out_pairs(folder: Path, task: str) -> Iterator[Pair]:
    """Yield the pairs of a task's dev and test sets, their white space as in training text."""
    src, tgt = task.split("-")
    for source in sorted((folder / "text").glob(f"*.{task}.{src}")):
        target = source.with_name(f"{source.name.removesuffix(src)}{tgt}")
        texts = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in (source, target))
        for one, other in zip(*texts, strict=True):
            yield " ".join(one.split()), " ".join(other.split())


def train_pairs(folder: Path, tasks: Sequence[str]) -> Iterator[Pair]:
    """Yield the training pairs of some tasks, decoded."""
    vocabulary = spm.SentencePieceProcessor(model_file=str(folder / "vocab.model"))
    for task in tasks:
        for path in sorted((folder / "shards" / f"train.{task}").glob("*.arrow")):
            with pa.memory_map(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
            for batch in table.to_batches(max_chunksize=10_000):
                sides = (vocabulary.decode(batch.column(side).to_pylist()) for side in ("src", "tgt"))
                yield from zip(*sides, strict=True)


def write_corpus(folder: Path, pairs: int) -> Path:
    """Write made-up text, in which every tenth pair is a near copy of the one before it."""
    folder.mkdir(parents=True)
    draw = random.Random(1)
    for language, vowels in (("en", "aei"), ("de", "ouy")):
        vocabulary = [
            "".join(draw.choice("bdfgklmnprst") + draw.choice(vowels) for _ in range(3)) for _ in range(900)
        ]
        lines = [" ".join(draw.choices(vocabulary, k=draw.randrange(6, 20))) for _ in range(pairs)]
        for row, (before, _) in enumerate(pairwise(lines)):
            if row % 10 == 0:
                copies = (
                    f"{before.title()}!",
                    f"{before} 7",
                    f"{lines[row + 1].split()[0]} {before}",
                    before,
                )
                lines[row + 1] = copies[row // 10 % 4]
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"train.en-de.{language}").write_text(text, encoding="utf-8")
    return folder


if __name__ == "__main__":
    run(main, smoke={"pairs": 2000, "held_out": 100, "vocab_size": 400})
