"""Pairs a second through `mnmt-data prepare`, and its memory.

Claim: preparing costs little more than tokenising, and memory does not grow with the corpus. Peer:
SentencePiece alone, on the same cores. Cited in docs/data/preparing.md.

The peer trains the same vocabulary on the same number of sentences and encodes every line, from lists in
memory, with as many threads: any preparation must do at least this. Ours also reads files, normalises,
filters, removes duplicates and held-out pairs, splits, writes shards and checksums. Memory is the largest
resident set of the process and its workers together, sampled, for a corpus and for one several times as
large.

    python -m benchmarks.data.preparation --out benchmarks/results/data/preparation.json
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_data import SyntheticConfig, prepare_study, read_study, write_synthetic_corpus
from mnmt_data.store import Vocabulary, read_lines, train_vocabulary

TASK = "xx-aa"

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


def main(
    *,
    pairs: int = 400_000,
    times: int = 4,
    jobs: int = 2,
    vocab_size: int = 8000,
    sentences: int = 100_000,
    out: Out = None,
) -> None:
    """Print pairs a second of both, and the memory of ours for two sizes of corpus.

    Args:
        pairs: Sentence pairs of the smaller corpus.
        times: How many times larger the other one is.
        jobs: Processes of ours, threads of the peer.
        vocab_size: Tokens of the vocabulary.
        sentences: Sentences on which the vocabulary is trained.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as folder:
        options = {"jobs": jobs, "vocab_size": vocab_size, "sentences": sentences}
        rows = [measure(Path(folder) / str(count), count, **options) for count in (pairs, pairs * times)]
    print_table(rows)
    description = provenance("mnmt-data", "sentencepiece", "pyarrow", "numpy")
    what = "mnmt-data prepare against SentencePiece alone"
    write_report(out, what, {**options, "results": rows}, description)


def measure(folder: Path, pairs: int, *, jobs: int, vocab_size: int, sentences: int) -> Figures:
    """Measure both on one corpus."""
    corpus = write_corpus(folder / "corpus", pairs)
    ours, peak = prepare(folder, corpus, jobs, vocab_size, sentences)
    train, encode = sentencepiece(folder, corpus, jobs, vocab_size, sentences)
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
    """Write training text of a synthetic language, without its description: so it is cleaned and split."""
    config = SyntheticConfig(
        languages=("aa",), concepts=50_000, target_syllables=3, source_syllables=3, train_sentences=pairs
    )
    write_synthetic_corpus(config, folder)
    for file in folder.iterdir():
        if not file.name.startswith("train."):
            file.unlink()
    return folder


def prepare(folder: Path, corpus: Path, jobs: int, vocab_size: int, sentences: int) -> tuple[float, float]:
    """Return seconds and peak megabytes of our preparation."""
    study = folder / "study.toml"
    text = STUDY.format(task=TASK, corpus=corpus, size=vocab_size, sentences=sentences)
    study.write_text(text, encoding="utf-8")
    with peak_memory() as peak:
        start = time.perf_counter()
        prepare_study(read_study(study), folder / "results", jobs=jobs)
        seconds = time.perf_counter() - start
    return seconds, peak[0]


def sentencepiece(
    folder: Path, corpus: Path, threads: int, vocab_size: int, sentences: int
) -> tuple[float, float]:
    """Return the seconds to train on as many sentences, and to encode every line."""
    src, tgt = (read_lines(corpus / f"train.{TASK}.{language}") for language in TASK.split("-"))
    step = max(1, 2 * len(src) // sentences)
    start = time.perf_counter()
    model = folder / "peer.model"
    train_vocabulary([*src[::step], *tgt[::step]], model, kind="unigram", size=vocab_size, languages=["aa"])
    trained = time.perf_counter()
    processor = Vocabulary.load(model)._processor
    for side in (src, tgt):
        processor.encode(side, add_eos=True, num_threads=threads)
    return trained - start, time.perf_counter() - trained


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Sample the peak memory of this process and its children, in megabytes over that at the start."""
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
    """Return the megabytes of this process and its children that no file backs."""
    import psutil

    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    total = 0
    for process in processes:
        try:
            memory = process.memory_info()
            total += memory.rss - memory.shared
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


if __name__ == "__main__":
    smoke = {"pairs": 3000, "times": 2, "vocab_size": 300, "sentences": 2000}
    run(main, smoke=smoke, needs=("psutil",))
