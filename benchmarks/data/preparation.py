"""Pairs a second through `mnmt-data prepare`, against SentencePiece alone on the same cores; and its memory.

The peer trains the same vocabulary on the same number of sentences and encodes every line, from lists in
memory, with as many threads: what any preparation must at least do. Ours also reads files, normalises,
filters, removes duplicates and what is held out, splits, writes shards and checksums. Memory is the largest
resident set of the process and its workers together, sampled, for a corpus and for one several times as
large: it must not grow with the corpus.

    python -m benchmarks.data.preparation --pairs 400000 --times 4 --workers 2
"""

from __future__ import annotations

import json
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cyclopts
import psutil

from mnmt_data import SyntheticConfig, prepare_study, read_study, write_synthetic_corpus
from mnmt_data.store import Vocabulary, read_lines, train_vocabulary

TASK = "xx-aa"
VOCABULARY = 8000
SENTENCES = 100_000
STUDY = """
name = "benchmark"
[data]
tasks = ["{task}"]
corpus = "{corpus}"
dev_sentences = 1000
test_sentences = 1000
[data.vocab]
size = {size}
sentences = {sentences}
"""


def main(pairs: int = 400_000, times: int = 4, workers: int = 2, out: Path | None = None) -> None:
    """Print pairs a second of both, and the memory of ours for two sizes of corpus.

    Args:
        pairs: Sentence pairs of the smaller corpus.
        times: How many times larger the other one is.
        workers: Processes of ours, threads of the peer.
        out: File for the figures.
    """
    with TemporaryDirectory() as folder:
        rows = [measure(Path(folder) / str(count), count, workers) for count in (pairs, pairs * times)]
    for row in rows:
        print(json.dumps(row))
    if out:
        out.write_text(json.dumps(describe(workers) | {"results": rows}, indent=1) + "\n", encoding="utf-8")


def measure(folder: Path, pairs: int, workers: int) -> dict[str, Any]:
    """Both ways over one corpus."""
    corpus = write_corpus(folder / "corpus", pairs)
    ours, peak = prepare(folder, corpus, workers)
    train, encode = sentencepiece(folder, corpus, workers)
    return {
        "pairs": pairs,
        "mnmt_data_seconds": round(ours, 1),
        "mnmt_data_pairs_per_second": round(pairs / ours),
        "mnmt_data_peak_mb": round(peak),
        "sentencepiece_train_seconds": round(train, 1),
        "sentencepiece_encode_seconds": round(encode, 1),
        "sentencepiece_pairs_per_second": round(pairs / (train + encode)),
        "times_the_peers_seconds": round(ours / (train + encode), 2),
    }


def write_corpus(folder: Path, pairs: int) -> Path:
    """Training text of a made language, without what says that it is made: so it is cleaned and split."""
    config = SyntheticConfig(
        languages=("aa",), concepts=50_000, target_syllables=3, source_syllables=3, train_sentences=pairs
    )
    write_synthetic_corpus(config, folder)
    for file in folder.iterdir():
        if not file.name.startswith("train."):
            file.unlink()
    return folder


def prepare(folder: Path, corpus: Path, workers: int) -> tuple[float, float]:
    """Seconds and peak megabytes of our preparation."""
    study = folder / "study.toml"
    text = STUDY.format(task=TASK, corpus=corpus, size=VOCABULARY, sentences=SENTENCES)
    study.write_text(text, encoding="utf-8")
    with peak_memory() as peak:
        start = time.perf_counter()
        prepare_study(read_study(study), folder / "results", jobs=workers)
        seconds = time.perf_counter() - start
    return seconds, peak[0]


def sentencepiece(folder: Path, corpus: Path, threads: int) -> tuple[float, float]:
    """Seconds to train on as many sentences, and to encode every line."""
    src, tgt = (read_lines(corpus / f"train.{TASK}.{language}") for language in TASK.split("-"))
    step = max(1, 2 * len(src) // SENTENCES)
    start = time.perf_counter()
    model = folder / "peer.model"
    train_vocabulary([*src[::step], *tgt[::step]], model, kind="unigram", size=VOCABULARY, languages=["aa"])
    trained = time.perf_counter()
    processor = Vocabulary.load(model)._processor
    for side in (src, tgt):
        processor.encode(side, add_eos=True, num_threads=threads)
    return trained - start, time.perf_counter() - trained


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """The largest resident set of this process and its children, in megabytes over that at the start."""
    peak, stop = [0.0], threading.Event()
    before = resident()

    def sample() -> None:
        while not stop.wait(0.05):
            peak[0] = max(peak[0], resident() - before)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    yield peak
    stop.set()
    sampler.join()


def resident() -> float:
    """Megabytes of this process and its children that no file backs."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    total = 0
    for process in processes:
        try:
            memory = process.memory_info()
            total += memory.rss - memory.shared
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def describe(workers: int) -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "what": "mnmt-data prepare against SentencePiece alone",
        "machine": f"{platform.machine()}, 2 cores",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "workers": workers,
        "versions": {name: version(name) for name in ("mnmt-data", "sentencepiece", "pyarrow", "numpy")},
    }


if __name__ == "__main__":
    cyclopts.run(main)
