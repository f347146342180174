"""Large training shards: the same pairs in random order, whatever stops the work or shares it."""

import os
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import encode, prepare_study, shuffle
from mnmt_data.readers import text_pairs
from mnmt_data.store.prepared import open_prepared
from mnmt_data.stream import BatchStream, Mixture
from mnmt_data.study import read_study

STUDY = """
name = "large"
[data]
tasks = ["en-de", "en-fr"]
corpus = "{folder}/corpus"
dev_sentences = 10
test_sentences = 10
[data.vocab]
kind = "word"
size = 300
[data.leaks]
normal_form = false
ngrams = false
"""
SCRIPT = """
import sys
from pathlib import Path
from mnmt_data.prepare import encode, prepare_study, shuffle, stages
from mnmt_data.readers import text_pairs
from mnmt_data.study import read_study
encode.SEGMENT_PAIRS, encode.SHUFFLED_PAIRS, shuffle.BLOCK_ROWS = 90, 150, 8
text_pairs.BLOCK_PAIRS, stages.STARTING_PAIRS = 30, 0
if __name__ == "__main__":
    prepare_study(read_study("study.toml"), Path(sys.argv[1]), jobs=2)
"""
PAIRS = {"en-de": 400, "en-fr": 60}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "corpus").mkdir()
    for task, pairs in PAIRS.items():
        for language in task.split("-"):
            draw = random.Random(task + language)
            lines = [
                f"{language}{draw.randrange(20)} " * draw.randrange(1, 9) + str(row) for row in range(pairs)
            ]
            (folder / f"corpus/train.{task}.{language}").write_text("\n".join(lines) + "\n")
    (folder / "study.toml").write_text(STUDY.format(folder=folder))
    return folder


@pytest.fixture
def prepare(folder, monkeypatch):
    """Prepare in segments of 90 pairs; shards of more than 150 are shuffled, in blocks of 8."""
    monkeypatch.setattr(encode, "SEGMENT_PAIRS", 90)
    monkeypatch.setattr(text_pairs, "BLOCK_PAIRS", 30)
    monkeypatch.setattr(encode, "SHUFFLED_PAIRS", 150)
    monkeypatch.setattr(shuffle, "BLOCK_ROWS", 8)
    return lambda out, jobs=1: prepare_study(read_study(folder / "study.toml"), out, jobs=jobs)


def contents(data):
    files = data.folder.rglob("*")
    return {path.relative_to(data.folder): path.read_bytes() for path in files if path.is_file()}


def pairs(shard):
    src, tgt = shard.gather(np.arange(len(shard)))
    return [(tuple(one.tolist()), tuple(other.tolist())) for one, other in zip(src, tgt, strict=True)]


@pytest.fixture
def data(prepare, tmp_path):
    return prepare(tmp_path / "shuffled")


@pytest.fixture
def in_order(prepare, tmp_path, monkeypatch):
    """The same, with no shard shuffled."""
    with monkeypatch.context() as patch:
        patch.setattr(encode, "SHUFFLED_PAIRS", 10**6)
        return prepare(tmp_path / "in order")


def test_a_large_shard_has_the_same_pairs_in_another_order(data, in_order):
    shuffled, before = data.shard("train", "en-de"), in_order.shard("train", "en-de")
    assert Counter(pairs(shuffled)) == Counter(pairs(before))
    assert pairs(shuffled) != pairs(before)
    assert shuffled.info == before.info
    assert (shuffled.block_rows, before.block_rows) == (8, 1)
    assert data.train_counts == in_order.train_counts
    data.verify()


def test_pairs_move_from_segment_to_segment(data, in_order):
    places = {pair: row for row, pair in enumerate(pairs(in_order.shard("train", "en-de")))}
    moved = [places[pair] for pair in pairs(data.shard("train", "en-de"))]
    fifths = [Counter(place // 90 for place in part) for part in np.array_split(moved, 5)]
    assert all(set(fifth) >= set(range(4)) for fifth in fifths)


def test_a_small_shard_stays_as_it_is(data, in_order):
    names = ("shards/train.en-fr/00000.arrow", "shards/dev.en-de/00000.arrow", "vocab.model")
    for name in names:
        assert (data.folder / name).read_bytes() == (in_order.folder / name).read_bytes()


def test_the_fingerprint_says_that_a_shard_is_shuffled(data, in_order, prepare):
    assert data.fingerprint != in_order.fingerprint
    before = {path: path.stat().st_mtime_ns for path in data.folder.rglob("*")}
    prepare(data.folder.parent)
    prepare(in_order.folder.parent)
    assert {path: path.stat().st_mtime_ns for path in data.folder.rglob("*")} == before


@pytest.mark.slow
def test_the_processes_do_not_matter(data, folder, tmp_path):
    """A script, as the processes that it starts have its settings too."""
    (folder / "prepare.py").write_text(SCRIPT)
    command = [sys.executable, "prepare.py", str(tmp_path / "two")]
    subprocess.run(command, cwd=folder, check=True)
    assert contents(open_prepared(tmp_path / "two/data")) == contents(data)


@pytest.mark.slow
def test_a_full_disk_does_not_matter(data, prepare, tmp_path, monkeypatch):
    room, fsync, again = 0, os.fsync, None

    def write(file):
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(28, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", write)
    for attempt in range(1, 100):
        room = attempt
        try:
            again = prepare(tmp_path / "full")
            break
        except DataError:
            assert not (tmp_path / "full/data").exists()
    assert contents(again) == contents(data)


def test_a_stream_reads_every_pair_once_an_epoch(data):
    shard = data.shard("train", "en-de")
    stream = BatchStream({"en-de": shard}, Mixture({"en-de": 1.0}), batch_tokens=200, seed=3)
    rows = stream.sampler.window(0).rows["en-de"][: len(shard)]
    assert sorted(rows.tolist()) == list(range(len(shard)))


def test_one_shard_at_a_time_lies_on_disk_twice(prepare, tmp_path, monkeypatch):
    work, tasks_on_disk = shuffle.run_shuffle_job, []

    def run(job):
        tasks_on_disk.append({path.name.split(".")[1] for path in job.parts[0].parent.glob("*.arrow")})
        work(job)

    monkeypatch.setattr(encode, "SHUFFLED_PAIRS", 20)
    monkeypatch.setattr(shuffle, "run_shuffle_job", run)
    data = prepare(tmp_path / "both")
    assert [set(one) for one in dict.fromkeys(map(tuple, tasks_on_disk))] == [{"en-de"}, {"en-fr"}]
    assert not (data.folder / "work").exists()
