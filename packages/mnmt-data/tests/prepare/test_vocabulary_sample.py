from pathlib import Path

import numpy as np
import pytest
import sentencepiece as spm
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.prepare import vocabulary_sample
from mnmt_data.prepare.config import DataConfig, VocabConfig
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.vocabulary_sample import (
    check_vocabulary,
    evenly_spaced_rows,
    language_shares,
    prepare_vocabulary,
    sample_sizes,
)
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.store.vocabulary import Vocabulary, train_vocabulary


@given(
    st.dictionaries(st.sampled_from(["de", "fr", "zh", "ru"]), st.integers(1, 10**9), min_size=1),
    st.floats(1, 100),
)
def test_shares_are_proportional_to_the_root_of_the_text(lines, temperature):
    shares = language_shares(lines, temperature)
    assert sum(shares.values()) == pytest.approx(1)
    for one in lines:
        for other in lines:
            ratio = (lines[one] / lines[other]) ** (1 / temperature)
            assert shares[one] / shares[other] == pytest.approx(ratio)


def test_no_more_is_sampled_than_there_is():
    lines = {("en-de", "src"): 30, ("en-de", "tgt"): 30}
    assert sum(sample_sizes(lines, VocabConfig(sentences=1000)).values()) == 60


@given(st.lists(st.booleans(), min_size=1).filter(any), st.integers(0, 50))
def test_rows_are_spread_evenly_over_those_chosen(chosen, size):
    chosen = np.array(chosen)
    rows, kept = evenly_spaced_rows(chosen, size), np.flatnonzero(chosen)
    assert rows.tolist() == [int(kept[place * len(kept) // size]) for place in range(size)]


def test_rows_are_spread_over_chunks_of_rows(monkeypatch):
    chosen = np.random.default_rng(1).random(1000) < 0.3
    whole = evenly_spaced_rows(chosen, 100)
    monkeypatch.setattr("mnmt_data.prepare.vocabulary_sample._ROWS_AT_A_TIME", 7)
    assert evenly_spaced_rows(chosen, 100).tolist() == whole.tolist()


def test_after_a_kill_only_the_training_is_repeated(tmp_path, monkeypatch):
    sentences = ["a b", "c\rd", "e\u2028f", "ä ö"] * 50
    samples = []

    def sample(*_):
        samples.append(1)
        yield from sentences

    monkeypatch.setattr(vocabulary_sample, "_sample", sample)
    space = Workspace(folder=tmp_path)
    config = DataConfig(tasks=("en-de",), corpus=Path("c"), vocab=VocabConfig(size=300))
    space.open(["this"])

    def killed(lines, *_, **__):
        samples.append(list(lines))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(vocabulary_sample, "train_vocabulary", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare_vocabulary(config, {"train": {}}, space, Stages())
    assert samples == [1, sentences]
    path = prepare_vocabulary(config, {"train": {}}, space, Stages())
    assert samples == [1, sentences]
    train_vocabulary(sentences, tmp_path / "other", kind="unigram", size=300, languages=["de"])
    assert path.read_bytes() == (tmp_path / "other").read_bytes()
    assert not list(space.work.glob("*.txt"))


def test_a_model_of_another_program_may_be_called_as_a_runs_own(tmp_path):
    path, lines = tmp_path / "vocab.model", iter(["a b c d e", "c d f"] * 20)
    spm.SentencePieceTrainer.train(
        sentence_iterator=lines, model_prefix=str(path.with_suffix("")), vocab_size=10, minloglevel=2
    )
    config = DataConfig(tasks=("en-de",), corpus=Path("c"), vocab=VocabConfig(path=path))
    check_vocabulary(config)
    space = Workspace(folder=tmp_path / "space")
    space.open(["this"])
    vocab = Vocabulary.load(prepare_vocabulary(config, {"train": {}}, space, Stages()))
    assert vocab.tag("de") == 3
