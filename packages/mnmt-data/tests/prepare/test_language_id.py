"""Language identification by a model of the user's, through the preparation of a study."""

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study

STUDY = """
name = "identified"
[data]
tasks = ["en-de"]
dev_sentences = 5
test_sentences = 5
files.train.en-de = ["{folder}/train.tsv"]
[data.clean]
language_id = "fasttext"
language_id_model = "{folder}/{model}"
[data.vocab]
kind = "word"
"""
ENGLISH = ["the", "of", "and", "house", "was", "weather", "nobody", "left"]
GERMAN = ["der", "die", "das", "und", "haus", "war", "wetter", "niemand"]


@pytest.fixture
def prepare(tmp_path, fasttext_model):
    lines = [
        (f"{one} {two}", f"{GERMAN[a]} {GERMAN[b]}")
        for a, one in enumerate(ENGLISH)
        for b, two in enumerate(ENGLISH)
    ]
    (tmp_path / "train.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in lines), encoding="utf-8")
    (tmp_path / "model.bin").write_bytes(fasttext_model.read_bytes())

    def run(model="model.bin"):
        (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path, model=model))
        return prepare_study(read_study(tmp_path / "study.toml"), tmp_path / "out", jobs=1)

    return run


def test_the_models_content_is_part_of_the_data(prepare, tmp_path):
    first = prepare().fingerprint
    assert prepare().fingerprint == first
    model = tmp_path / "model.bin"
    model.write_bytes(model.read_bytes() + b"\0")
    assert prepare().fingerprint != first


def test_a_missing_model_is_named(prepare, tmp_path):
    key = r"\[data\.clean\] `language_id_model`"
    with pytest.raises(
        DataError, match=rf"{key}: {tmp_path}/none\.bin: no such file; its folder holds model\.bin"
    ):
        prepare("none.bin")
