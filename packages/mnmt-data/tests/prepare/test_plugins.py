"""Readers of other distributions through the preparation of a study, with scores beside their files."""

import pytest

from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study

SOURCE = """
from mnmt_data.readers import blocks_of

class Bars:
    def __init__(self, path, task):
        self.path = path

    @property
    def paths(self):
        return (self.path,)

    def blocks(self, *, skip_bad=False):
        lines = self.path.read_text(encoding="utf-8").splitlines()
        yield from blocks_of((tuple(line.split("|")) for line in lines), skip_bad=skip_bad)
"""
STUDY = """
name = "barred"
[data]
tasks = ["en-de"]
dev_sentences = 5
test_sentences = 5
files.train.en-de = ["{folder}/x.bars"]
[data.vocab]
kind = "word"
"""
WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu")


@pytest.fixture
def prepare(tmp_path):
    lines = [f"{one} {two}" for one in WORDS for two in WORDS]
    (tmp_path / "x.bars").write_text("".join(f"en {line}|de {line}\n" for line in lines))
    (tmp_path / "x.bars.laser").write_text("".join(f"{row}\n" for row in range(64)))

    def run(more=""):
        (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path) + more)
        return prepare_study(read_study(tmp_path / "study.toml"), tmp_path / "out", jobs=1)

    return run


@pytest.mark.parametrize("more", ["", "[data.scores]\nlaser = { min = 24 }\n"])
def test_the_version_of_a_reader_makes_other_data(prepare, install, more):
    metadata = install("acme", "[mnmt_data.readers]\n.bars = acme:Bars\n", SOURCE) / "METADATA"
    first = prepare(more)
    assert first.description.filters["en-de"].read == 64
    assert prepare(more).fingerprint == first.fingerprint
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    assert prepare(more).fingerprint != first.fingerprint


def test_scores_stand_beside_a_file_that_a_plugin_reads(prepare, install):
    install("acme", "[mnmt_data.readers]\n.bars = acme:Bars\n", SOURCE)
    data = prepare("[data.scores]\nlaser = { min = 24 }\n")
    assert data.description.filters["en-de"].counts["laser"] == 24
    (scores,) = data.scores("en-de", "laser")
    assert len(scores) == data.train_counts["en-de"].pairs
    assert scores.min() >= 24
