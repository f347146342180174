"""150 million real pairs prepared, and 300 million real rows read from disk, by one rank and by eight.

Claim: preparation has one rate and one memory at any size, and a stream reads what it trains on and little
more, in few files, whatever the number of segments. No peer. Cited in docs/data/web-scale.md.

The text is real and made long: `--corpora` names folders of parallel text of English and some languages, and
every pair of short lines is repeated as often as needed, each time between two other words of its language on
both sides. It is written with zstd, and prepared as any corpus is. So that six tasks are read, each shard is
written once more with its sides exchanged and every tenth token id replaced by another. Then the share of a
rank is read: cold, after the system was asked to forget the files, and warm, the same again. Bytes read are
those that the kernel fetched from storage. At last the segments are joined by sixes, and read again.

What is done is not done again: text that is there is used, and so are prepared data. 150 million pairs need
some 50 GB.

    python -m benchmarks.data.large_corpus --corpora corpora/gettext corpora/libreoffice-help --folder large \
        --out benchmarks/results/data/large_corpus.json
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count, repeat
from multiprocessing import get_context
from pathlib import Path
from string import ascii_lowercase
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np
import pyarrow as pa

from benchmarks.data.large_shards import forget, read
from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_data.prepare import encode, prepare_study
from mnmt_data.readers import find_readers
from mnmt_data.store import Ragged, Vocabulary, segment_path, write_segment
from mnmt_data.store.segment_file import SegmentFile
from mnmt_data.stream import Share
from mnmt_data.study import read_study

STUDY = """
name = "large"
[data]
tasks = {tasks}
corpus = "{corpus}"
dev_sentences = {held_out}
test_sentences = {held_out}
[data.vocab]
size = {vocab_size}
"""
GROUP = 2000
"""Pairs that are repeated together: near enough for the compressor to see that they were there before."""

Sides = tuple[list[str], list[str]]


def main(
    *,
    corpora: Names = (),
    languages: Names = ("de", "fr", "es"),
    pairs: int = 154_000_000,
    longest: int = 60,
    segment_pairs: int = 240_000,
    held_out: int = 200,
    vocab_size: int = 32_000,
    joined: int = 6,
    windows: int = 8,
    batch_tokens: int = 65_536,
    jobs: int = 2,
    folder: Path | None = None,
    out: Out = None,
) -> None:
    """Write, prepare and read.

    Args:
        corpora: Folders with text `train.en-XX`; by default made-up lines, for `--smoke`.
        languages: The languages; each makes a task with English.
        pairs: Pairs of all tasks together.
        longest: Characters of the longest line of the corpora that is taken.
        segment_pairs: Pairs of a segment, about.
        held_out: Pairs of each dev and test set.
        vocab_size: Tokens of the vocabulary.
        joined: Segments that are joined to one for the second reading.
        windows: Windows of batches that are read.
        batch_tokens: Tokens of a batch of all ranks.
        jobs: Processes of the preparation.
        folder: Folder for all of it; by default one that is removed.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as temporary:
        folder = folder or Path(temporary)
        tasks = [f"en-{language}" for language in languages]
        sources = [Path(name) for name in corpora]
        text = write_text(folder / "corpus", tasks, sources, pairs // len(tasks), longest)
        print_table([text])
        study = folder / "study.toml"
        settings = {"held_out": held_out, "vocab_size": vocab_size}
        study.write_text(STUDY.format(tasks=json.dumps(tasks), corpus=folder / "corpus", **settings))
        prepared = prepare(study, segment_pairs, jobs)
        print_table([prepared])
        data = folder / "results" / "data"
        num_ids = Vocabulary.load(data / "vocab.model").size
        many = add_exchanged(data / "shards", folder / "many", tasks, num_ids)
        few = join_segments(many, folder / "few", joined)
        rows = [
            measure(path, present, ranks, windows, batch_tokens)
            for path in (many, few)
            for present, ranks in ((1, 1), (1, 8), (8, 8))
        ]
        print_table(rows)
    figures = {"text": text, "preparation": prepared, "windows": windows, "batch_tokens": batch_tokens}
    write_report(
        out,
        "a large corpus, prepared and read",
        {**figures, "reading": rows},
        provenance("mnmt-data", "pyarrow", "numpy", "sentencepiece"),
    )


def write_text(
    folder: Path, tasks: Sequence[str], corpora: Sequence[Path], pairs: int, longest: int
) -> Figures:
    """Write the text of all tasks, two at a time; what is complete stays."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        bases = list(
            pool.map(write_task, repeat(folder), tasks, repeat(corpora), repeat(pairs), repeat(longest))
        )
    size = sum(path.stat().st_size for path in folder.iterdir())
    return {
        "pairs": pairs * len(tasks),
        "different_pairs_of_the_corpora": sum(bases),
        "gigabytes_of_zstd": round(size / 1e9, 2),
        "seconds": round(time.perf_counter() - start),
    }


def write_task(folder: Path, task: str, corpora: Sequence[Path], pairs: int, longest: int) -> int:
    """Write the text of a task; return how many different pairs it is made of."""
    base = read_pairs(corpora, task, longest) if corpora else made_up_pairs(task)
    paths = [folder / f"train.{task}.{language}.zst" for language in task.split("-")]
    if not all(path.exists() for path in paths):
        partial = [path.with_suffix(".partial") for path in paths]
        with (
            pa.output_stream(partial[0], compression="zstd") as src,
            pa.output_stream(partial[1], compression="zstd") as tgt,
        ):
            for group in repetitions(base, pairs):
                for stream, lines in zip((src, tgt), group, strict=True):
                    stream.write(("\n".join(lines) + "\n").encode())
        for path, finished in zip(partial, paths, strict=True):
            path.rename(finished)
    return len(base[0])


def read_pairs(corpora: Sequence[Path], task: str, longest: int) -> Sides:
    """Read the lines of a task of some corpus folders, without empty and long ones."""
    src, tgt = [], []
    for folder in corpora:
        for reader in find_readers(folder, "train", task):
            for block in reader.blocks():
                for one, other in zip(block.src, block.tgt, strict=True):
                    if 0 < len(one) <= longest and 0 < len(other) <= longest:
                        src.append(one)
                        tgt.append(other)
    return src, tgt


def made_up_pairs(task: str) -> Sides:
    """Return some pairs for a trial of this script."""
    draw = random.Random(task)
    words = ["".join(draw.choices(ascii_lowercase, k=5)) for _ in range(500)]
    lines = [" ".join(draw.choices(words, k=draw.randrange(3, 20))) for _ in range(600)]
    return lines, [line[::-1] for line in lines]


def repetitions(base: Sides, pairs: int) -> Iterator[Sides]:
    """Yield every pair equally often, or once more, between other words each time; some pairs at a time."""
    words = [_words(side) for side in base]
    times = [pairs // len(base[0]) + (row < pairs % len(base[0])) for row in range(0, len(base[0]), GROUP)]
    for start, repeated in zip(range(0, len(base[0]), GROUP), times, strict=True):
        for number in range(repeated):
            src, tgt = (
                _between(side[start : start + GROUP], vocabulary, number)
                for side, vocabulary in zip(base, words, strict=True)
            )
            yield src, tgt


def _words(lines: Sequence[str]) -> list[str]:
    """Return some thousand different words of a text, in random order."""
    words = sorted({word for line in lines[:: max(1, len(lines) // 20_000)] for word in line.split()})
    random.Random(1).shuffle(words)
    return words[:4096]


def _between(lines: Sequence[str], words: Sequence[str], number: int) -> list[str]:
    """Put lines between two words, of which the first depends on `number` alone."""
    before = words[number % len(words)] + " "
    after = (words[(number * 31 + row * 7) % len(words)] for row in count())
    return [f"{before}{line} {word}" for line, word in zip(lines, after, strict=False)]


def prepare(study: Path, segment_pairs: int, jobs: int) -> Figures:
    """Prepare a study, unless that is done; return rate, peak memory and descriptors, and time by stage."""
    figures = study.with_name("preparation.json")
    if not figures.exists():
        encode.SEGMENT_PAIRS = segment_pairs
        stages: dict[str, float] = {}
        start = last = time.perf_counter()

        def report(line: str) -> None:
            nonlocal last
            now = time.perf_counter()
            stages[line] = round(now - last, 1)
            last = now
            print(f"{now - start:.0f} s: {line}", flush=True)

        with Sampler() as sampler:
            data = prepare_study(read_study(study), study.with_name("results"), jobs=jobs, report=report)
        seconds = time.perf_counter() - start
        read_pairs = sum(info.read for info in data.description.filters.values())
        rows = sum(info.pairs for info in data.train_counts.values())
        result = {
            "pairs_read": read_pairs,
            "segment_rows": rows,
            "segments": sum(1 for _ in (data.folder / "shards").glob("train.*/*.arrow")),
            "gigabytes": round(sum(file.bytes for file in data.description.files.values()) / 1e9, 2),
            "jobs": jobs,
            "seconds": round(seconds),
            "pairs_per_second": round(read_pairs / seconds),
            **sampler.figures(),
            "load": os.getloadavg(),
            "seconds_of_stages": stages,
        }
        figures.write_text(json.dumps(result), encoding="utf-8")
    loaded: Figures = json.loads(figures.read_text(encoding="utf-8"))
    return loaded


class Sampler:
    """Samples the memory and the open files of this process and its children."""

    def __init__(self) -> None:
        self._stop = Event()
        self._peak: dict[str, float] = {"peak_mb_of_all": 0, "peak_mb_of_one": 0, "descriptors_of_one": 0}
        self._thread = Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def figures(self) -> Figures:
        """Return the peaks: megabytes that no file backs, of all processes together and of one."""
        return {name: round(value) for name, value in self._peak.items()}

    def _sample(self) -> None:
        import psutil

        while not self._stop.wait(0.5):
            memory, files = [0.0], [0]
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    info = process.memory_info()
                    memory.append((info.rss - info.shared) / 2**20)
                    files.append(process.num_fds())
                except psutil.Error:
                    continue
            for name, value in zip(self._peak, (sum(memory), max(memory), max(files)), strict=True):
                self._peak[name] = max(self._peak[name], value)


def add_exchanged(shards: Path, folder: Path, tasks: Sequence[str], vocab_size: int) -> Path:
    """Write each task's shard, and as that of the opposite task with other tokens; return their folder."""
    for task in tasks:
        same, opposite = folder / task, folder / "-".join(reversed(task.split("-")))
        for segment in sorted((shards / f"train.{task}").glob("*.arrow")):
            if not (opposite / segment.name).exists():
                src, tgt, block_rows = _rows([segment])
                _write(same / segment.name, src, tgt, block_rows)
                src, tgt = (_replace_tokens(side, vocab_size) for side in (tgt, src))
                _write(opposite / segment.name, src, tgt, block_rows)
    return folder


def _replace_tokens(rows: Ragged, vocab_size: int) -> Ragged:
    """Replace every tenth token id by another, except special ones."""
    special, values = 16, rows.values.copy()
    tenth = values[::10].astype(np.int64)
    values[::10] = np.where(tenth < special, tenth, special + (7 * tenth + 1) % (vocab_size - special))
    return Ragged(values, rows.offsets)


def join_segments(shards: Path, folder: Path, joined: int) -> Path:
    """Write the same rows in the same order in segments of several; return the folder of the shards."""
    for source in sorted(shards.iterdir()):
        segments = sorted(source.glob("*.arrow"))
        for number, start in enumerate(range(0, len(segments), joined)):
            path = segment_path(folder / source.name, number)
            if not path.exists():
                _write(path, *_rows(segments[start : start + joined]))
    return folder


def _rows(segments: Sequence[Path]) -> tuple[Ragged, Ragged, int]:
    """Read all rows of some segments: source and target token ids, and the rows of a block."""
    files, rows = [SegmentFile.open(path) for path in segments], []
    for file in files:
        with file.descriptor() as descriptor:
            rows.append(file.read_tokens(descriptor, 0, file.info.pairs))
    src, tgt = (Ragged.concatenate([pair[side] for pair in rows]) for side in (0, 1))
    return src, tgt, files[0].block_rows


def _write(path: Path, src: Ragged, tgt: Ragged, block_rows: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_segment(path, src, tgt, block_rows=block_rows)


def measure(shards: Path, present: int, ranks: int, windows: int, batch_tokens: int) -> Figures:
    """Read the shares of the first ranks at once, a process each: from the disk, then again from memory."""
    folders = {path.name: path for path in sorted(shards.iterdir())}
    for path in folders.values():
        forget(path)
    shares = [Share(rank=rank, num_ranks=ranks) for rank in range(present)]
    with ProcessPoolExecutor(present, mp_context=get_context("spawn")) as pool:
        repeated = [repeat(one) for one in (windows, batch_tokens)]
        cold, warm = (list(pool.map(read, repeat(folders), shares, *repeated)) for _ in range(2))
    from_disk, used = (sum(one[name] for one in cold) for name in ("read", "used"))
    segments = [path for folder in folders.values() for path in folder.glob("*.arrow")]
    return {
        "segments": len(segments),
        "million_rows": round(sum(SegmentFile.open(path).info.pairs for path in segments) / 1e6, 1),
        "ranks": f"{present} of {ranks}",
        "cold_pairs_per_second": round(sum(one["pairs_per_second"] for one in cold)),
        "warm_pairs_per_second": round(sum(one["pairs_per_second"] for one in warm)),
        "read_mb": round(from_disk / 2**20, 1),
        "token_mb": round(used / 2**20, 1),
        "bytes_read_per_byte_used": round(from_disk / used, 2),
        "open_files_of_one": max(one["open_files"] for one in cold),
    }


if __name__ == "__main__":
    run(
        main,
        smoke={"pairs": 12_000, "segment_pairs": 200, "held_out": 3, "vocab_size": 900, "windows": 2},
        needs=("psutil",),
    )
