"""What prepared data give to read, whatever their format: to the last bit that of version 0.4."""

import random
from hashlib import blake2b

import numpy as np
import pytest

from mnmt_data.prepare import encode, prepare_study, shuffle
from mnmt_data.readers import text_pairs
from mnmt_data.stream import BatchStream, Mixture, eval_batches
from mnmt_data.study import read_study

STUDY = """
name = "digest"
[data]
tasks = ["en-de", "fr-de"]
corpus = "{folder}/corpus"
dev_sentences = 10
test_sentences = 10
max_length = 10
target_tag = "{target_tag}"
[data.vocab]
kind = "word"
size = 300
[data.leaks]
normal_form = false
ngrams = false
"""
PAIRS = {"en-de": 400, "fr-de": 60}

DIGESTS = {
    ("prepended", False): "8e06cf41cf3ad35eb62d09f5290e031f",
    ("prepended", True): "a475649013222bba436e2063c9104008",
    ("appended", False): "7fe45384ffc6b4c92f6aa088abe1f68e",
    ("appended", True): "e43dd673d3535ea9e78897e6e6d42cce",
    ("none", False): "0ca9df3205dba0cfccc314794dcd5ced",
    ("none", True): "5e959b0319e8aeea354a02b87cc302e5",
}
"""{(place of the tag, whether the larger shard is shuffled): digest of everything read}, computed when shards
still held tags: of data in order by version 0.4.0, of shuffled data by the first that shuffled."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "corpus").mkdir()
    for task, pairs in PAIRS.items():
        for language in task.split("-"):
            draw = random.Random(task + language)
            lines = [
                f"{language}{draw.randrange(20)} " * draw.randrange(1, 10) + str(row) for row in range(pairs)
            ]
            (folder / f"corpus/train.{task}.{language}").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def prepare(folder, tmp_path, monkeypatch):
    """Prepare in segments of 90 pairs; shards of more than 150 are shuffled if asked for, in blocks of 8."""

    def run(target_tag, *, shuffled):
        monkeypatch.setattr(encode, "SEGMENT_PAIRS", 90)
        monkeypatch.setattr(text_pairs, "BLOCK_PAIRS", 30)
        monkeypatch.setattr(encode, "SHUFFLED_PAIRS", 150 if shuffled else 10**6)
        monkeypatch.setattr(shuffle, "BLOCK_ROWS", 8)
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(folder=folder, target_tag=target_tag), encoding="utf-8")
        return prepare_study(read_study(path), tmp_path / "out", jobs=1)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("target_tag", "shuffled"), DIGESTS)
def test_one_direction_reads_as_it_ever_did(prepare, target_tag, shuffled):
    data = prepare(target_tag, shuffled=shuffled)
    assert data.description.schema == 4
    assert digest(data) == DIGESTS[target_tag, shuffled]


def digest(data):
    """Hash every pair, the batches of a stream and those of evaluation, and all counts."""
    content = blake2b(digest_size=16)
    for split in ("train", "dev", "test"):
        for task in data.tasks:
            shard = data.shard(split, task)
            every = np.arange(len(shard))
            for rows in (*shard.gather(every), *shard.gather(every[::-2])):
                content.update(rows.values.astype("<i8").tobytes() + rows.offsets.astype("<i8").tobytes())
            for lengths in shard.lengths(every[::-1]):
                content.update(lengths.astype("<i8").tobytes())
            for batch in eval_batches(shard, batch_tokens=100):
                update(content, batch)
            counts = data.description.counts[split][task]
            info = shard.info
            names = ("pairs", "src_tokens", "tgt_tokens", "longest", "longest_side")
            content.update(str([(getattr(counts, name), getattr(info, name)) for name in names]).encode())
            content.update(str((counts.byte_tokens, counts.unknown_tokens)).encode())
    shards = {task: data.shard("train", task) for task in data.tasks}
    stream = BatchStream(shards, Mixture({"en-de": 0.7, "fr-de": 0.3}), batch_tokens=200, seed=3)
    for step in (0, 1, 2, 200):
        update(content, stream.batch(step))
    return content.hexdigest()


def update(content, batch):
    for table in (batch.src, batch.tgt, batch.tasks, batch.loss_weights, batch.ids):
        content.update(str((table.shape, table.dtype)).encode() + table.tobytes())
