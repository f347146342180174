"""Random damage to every file of prepared data, and what reading it then gives.

Claim: damage is one line that names the file, or changes nothing that is read; never a traceback, never other
tokens. No peer. Cited in docs/architecture.md.

Data of two directions and a third task are prepared, in some segments each, and copied for each way that
shards are read: small ones, larger ones row by row, shuffled ones by stretches and row by row, and as version
0.4 wrote them. A child process damages a file of its copy, by chance: bits flipped, bytes overwritten, zeros,
two stretches exchanged, cut off, appended to, or a segment in the place of another. It reads the data in all
ways there are, and puts the file back. `caught` is a DataError of one line that names the file or its folder,
`unchanged` a result equal to that of sound data (damage of bytes that nobody reads). Everything else is a
failure, as are a crash of the interpreter, more than `LIMIT` bytes of memory, and more than `SECONDS`.

Version 0.4 had no checksums of prepared.json and of orders, so these are damaged in newer data alone.

    python -m benchmarks.data.damaged_segments --out benchmarks/results/data/damaged_segments.json
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.damaged_readings import READERS, WAYS, digest, scores, sizes_of
from benchmarks.data.damages import choose, damage, kind_of
from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_data.errors import DataError
from mnmt_data.prepare import encode, prepare_study, shuffle
from mnmt_data.readers import text_pairs
from mnmt_data.store import (
    PreparedData,
    ScoresInfo,
    checksum,
    open_prepared,
    score_table,
    scores_schema,
    segment_path,
    write_segment,
)
from mnmt_data.store.description import TAGGED_SCHEMA, FileInfo
from mnmt_data.store.prepared import shard_path
from mnmt_data.store.shards import write_loss_weights
from mnmt_data.stream import order_path
from mnmt_data.stream.selection import select
from mnmt_data.study import read_study

LIMIT = 4 * 2**30
SECONDS = 30

STUDY = """
name = "damage"
[data]
tasks = ["en-de", "de-en", "en-fr"]
corpus = "{folder}/corpus"
dev_sentences = 40
test_sentences = 40
[data.vocab]
kind = "word"
size = 400
[data.leaks]
normal_form = false
ngrams = false
"""


def main(
    *,
    damages: int = 10_000,
    pairs: int = 1500,
    per_process: int = 100,
    jobs: int = 2,
    seed: int = 1,
    out: Out = None,
) -> None:
    """Print how often damage was caught, and changed nothing; end with status 1 where it did anything else.

    Args:
        damages: Files to damage, one after the other.
        pairs: Sentence pairs of a task.
        per_process: Damages in a child process.
        jobs: Child processes at a time.
        seed: Seed of the damages.
        out: JSON file for the figures.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_data(folder, pairs)
        parts = [range(first, min(first + per_process, damages)) for first in range(0, damages, per_process)]
        with ThreadPoolExecutor(jobs) as threads:
            done = threads.map(lambda numbers: list(in_child(folder, numbers, seed)), parts)
            results = [result for part in done for result in part]
    rows = summary(results)
    print_table(rows)
    failures = [result for result in results if result["outcome"] not in ("caught", "unchanged")]
    for failure in failures[:20]:
        print(json.dumps(failure))
    print(f"{len(results)} damages, {len(failures)} failures")
    figures = {"damages": len(results), "pairs": pairs, "failures": failures, "results": rows}
    write_report(out, "damage to prepared data", figures, provenance("mnmt-data", "pyarrow", "numpy"))
    sys.exit(bool(failures))


def summary(results: list[Figures]) -> list[Figures]:
    """Count the outcomes of each kind of file and way of reading."""
    outcomes = ("caught", "unchanged", "failed")
    counts = Counter((result["kind"], result["way"], result["outcome"]) for result in results)
    return [
        {"file": kind, "read": way, **{outcome: counts[kind, way, outcome] for outcome in outcomes}}
        for kind, way in sorted({(kind, way) for kind, way, _ in counts})
    ]


def write_data(folder: Path, pairs: int) -> None:
    """Prepare the data of each way of reading, with a run, scores and orders of selected data."""
    random = np.random.default_rng(5)
    (folder / "corpus").mkdir()
    for task in ("en-de", "en-fr"):
        for language in task.split("-"):
            sizes = random.integers(1, 12, size=pairs)
            lines = [
                " ".join(f"{language}{word}" for word in random.integers(60, size=size)) for size in sizes
            ]
            text = "".join(f"{line} {language}x{row % 97}\n" for row, line in enumerate(lines))
            (folder / f"corpus/train.{task}.{language}").write_text(text, encoding="utf-8")
    (folder / "study.toml").write_text(STUDY.format(folder=folder), encoding="utf-8")
    for way in WAYS:
        out = folder / way
        with (
            patch.object(encode, "SEGMENT_PAIRS", pairs // 3),
            patch.object(encode, "SHUFFLED_PAIRS", 0 if "shuffled" in way else 10**9),
            patch.object(shuffle, "BLOCK_ROWS", 128),
            patch.object(text_pairs, "BLOCK_PAIRS", pairs // 6),
        ):
            data = prepare_study(read_study(folder / "study.toml"), out, jobs=1)
        data = complete(data, is_old=way.startswith("version 0.4"))
        for name in ("base", "tuned"):
            write_scores(out / f"{name}.parquet", data, random)
        select(data, "en-de", **scores(out), out=order_path(data.folder, "en-de"))
        (out / "run").mkdir()
        (out / "run/run.json").write_text(json.dumps(RECORD), encoding="utf-8")


RECORD = {
    "data": "../data",
    "mixture": {"en-de": 0.5, "de-en": 0.2, "en-fr": 0.3},
    "seed": 3,
    "config": {"train": {"batch_tokens": 500, "mixing": {}}},
}


def complete(data: PreparedData, *, is_old: bool) -> PreparedData:
    """Add weights of pairs, and write the data as version 0.4 did, with tags in every source."""
    description = data.description
    if is_old:
        held = {
            (split, task): data.shard(split, task).gather(np.arange(len(data.shard(split, task))))
            for split, tasks in description.counts.items()
            for task in tasks
        }
        shutil.rmtree(data.folder / "shards")
        for (split, task), (src, tgt) in held.items():
            path = shard_path(data.folder, split, task)
            path.mkdir(parents=True)
            write_as_version_0_4(segment_path(path, 0), src, tgt)
        description = replace(description, schema=TAGGED_SCHEMA, shards={})
    shard = data.folder / "shards/test.en-fr"
    write_loss_weights(shard, np.linspace(0, 2, description.counts["test"]["en-fr"].pairs))
    files = {
        path.relative_to(data.folder).as_posix(): FileInfo(bytes=path.stat().st_size, sha256=checksum(path))
        for path in sorted(data.folder.rglob("*"))
        if path.is_file() and path.name != "prepared.json"
    }
    description = replace(description, files=files)
    description.write(data.folder)
    if is_old:
        path = data.folder / "prepared.json"
        table = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(
            json.dumps({key: value for key, value in table.items() if key not in ("checksum", "shards")}),
            encoding="utf-8",
        )
    return open_prepared(data.folder)


def write_as_version_0_4(path: Path, src: Any, tgt: Any) -> None:
    """Write a segment without lengths and checksums."""
    write_segment(path, src, tgt)
    table = pa.ipc.open_file(path.read_bytes()).read_all().select(["src", "tgt"])
    table = table.replace_schema_metadata({"mnmt": table.schema.metadata[b"mnmt"]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_scores(path: Path, data: PreparedData, random: np.random.Generator) -> None:
    """Write random log-probabilities of the training pairs of a task."""
    shard = data.shard("train", "en-de")
    info = ScoresInfo(
        run="run", step=1, weights="0", split="train", task="en-de", fingerprint=data.fingerprint
    )
    _, tokens = shard.lengths(np.arange(len(shard)))
    table = score_table(random.random(len(shard)), tokens, tokens, info)
    with pq.ParquetWriter(path, scores_schema(info), write_page_checksum=True) as writer:
        writer.write_table(table)


def in_child(folder: Path, numbers: range, seed: int) -> Iterator[Figures]:
    """Yield what came of each damage, in child processes; where one ends too early, the next goes on."""
    context = get_context("spawn")
    while numbers:
        results = folder / f"{numbers[0]}.jsonl"
        results.write_text("", encoding="utf-8")
        child = context.Process(target=damage_all, args=(folder, numbers, seed, results))
        child.start()
        child.join()
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        yield from lines
        if len(lines) < len(numbers):
            place = {"number": numbers[len(lines)], "way": "", "kind": "", "outcome": "failed"}
            yield {**place, "what": f"the process ended with {child.exitcode}"}
        numbers = numbers[len(lines) + 1 :]


def damage_all(folder: Path, numbers: range, seed: int, results: Path) -> None:
    """Damage one file after the other of copies of the data, and note what came of each."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    signal.signal(signal.SIGALRM, _too_long)
    expected: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory(dir=folder) as temporary, results.open("a", encoding="utf-8") as file:
        for number in numbers:
            random = np.random.default_rng([seed, number])
            way = list(WAYS)[number % len(WAYS)]
            out = Path(temporary) / way
            with sizes_of(way):
                if not out.exists():
                    shutil.copytree(folder / way, out)
                    expected |= {(way, reader.__name__): digest(reader(out)) for reader in READERS}
                result = damage_one(out, way, random, expected)
            file.write(json.dumps({"number": number, "way": way, **result}) + "\n")
            file.flush()


def damage_one(
    out: Path, way: str, random: np.random.Generator, expected: Mapping[tuple[str, str], str]
) -> Figures:
    """Damage a file, read the data in every way, put the file back, and tell what came of it."""
    path = choose(out, way, random)
    others = {path: path.read_bytes()}
    what = damage(path, random, others)
    outcomes = [outcome(reader, out, others, expected[way, reader.__name__]) for reader in READERS]
    for file, content in others.items():
        file.write_bytes(content)
    failures = [line for line in outcomes if line not in ("caught", "unchanged")]
    known = "caught" if "caught" in outcomes else "unchanged"
    failed = "failed" if failures else known
    return {"kind": kind_of(path), "what": what, "outcome": failed, "why": failures[:1]}


def outcome(reader: Callable[[Path], object], out: Path, damaged: Mapping[Path, bytes], expected: str) -> str:
    """Read, and tell what came of it: `caught`, `unchanged`, or what went wrong."""
    signal.alarm(SECONDS)
    try:
        same = digest(reader(out)) == expected
    except DataError as error:
        message = str(error)
        names = [
            name for path in damaged for name in (f"{path.parent.name}/{path.stem}.", f"{path.parent.name}:")
        ]
        named = any(name in message for name in names)
        return "caught" if named and "\n" not in message else f"{reader.__name__}: {message}"
    except BaseException:
        return f"{reader.__name__}: {traceback.format_exc(limit=-4)}"
    finally:
        signal.alarm(0)
    return "unchanged" if same else f"{reader.__name__}: silently something else"


def _too_long(*_: object) -> None:
    raise TimeoutError(f"reading took more than {SECONDS} s")


if __name__ == "__main__":
    run(main, smoke={"damages": 12, "pairs": 400, "per_process": 6})
