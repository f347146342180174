import io

import pytest
import sentencepiece as spm
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store.renumbering import is_ours, renumber
from mnmt_data.store.vocabulary import Vocabulary, train_vocabulary

TEXT = "the house was warm and nobody left it der Hund läuft über die Straße niemand"
WORDS = tuple(TEXT.split())
LINES = [" ".join(WORDS[(i * k) % len(WORDS)] for k in range(1, 7)) for i in range(1, 120)]
OPTIONS = {
    "the defaults": {},
    "bpe": {"model_type": "bpe"},
    "char": {"model_type": "char"},
    "word": {"model_type": "word", "vocab_size": 12},
    "bytes": {"byte_fallback": True, "vocab_size": 330},
    "symbols of users": {"user_defined_symbols": ["<mask>", "<2de>", "@@"], "control_symbols": ["[SOS]"]},
    "a tag of control": {"control_symbols": ["<2de>"]},
    "other names": {"unk_piece": "xxunk", "eos_piece": "xxeos", "pad_id": 3, "pad_piece": "[PAD]"},
    "no sentence ends": {"bos_id": -1, "eos_id": -1, "control_symbols": ["[SOS]", "[EOS]"]},
    "no tags": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "other text": {"normalization_rule_name": "nfkc_cf", "add_dummy_prefix": False},
}


@pytest.fixture(scope="module", params=OPTIONS)
def models(request, tmp_path_factory):
    """A model as another program trains it, and the same renumbered."""
    path, model = tmp_path_factory.mktemp("own") / "own.model", io.BytesIO()
    options = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2, **OPTIONS[request.param]}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=model, **options)
    path.write_bytes(model.getvalue())
    new = path.with_name("new.model")
    new.write_bytes(renumber(path, ["de", "fr"]))
    return tuple(spm.SentencePieceProcessor(model_file=str(file)) for file in (path, new))


def test_ids_and_tags_are_ours(models, tmp_path):
    own, new = models
    assert not is_ours(own)
    assert is_ours(new)
    (tmp_path / "new.model").write_bytes(new.serialized_model_proto())
    vocab = Vocabulary.load(tmp_path / "new.model")
    assert [vocab.tag("de"), vocab.tag("fr")] == [3, 4]
    assert (new.pad_id(), new.eos_id(), new.unk_id(), new.bos_id()) == (0, 1, 2, -1)


@given(st.lists(st.sampled_from([*WORDS, "<mask>", "@@", "日本", "ﬁ", "xxunk", "Ⅳ", "  "]), max_size=9))
def test_text_has_the_same_pieces_with_the_same_scores(models, words):
    own, new = models
    line = " ".join(words)
    before, after = own.encode(line), new.encode(line)
    known = [(one, other) for one, other in zip(before, after, strict=True) if one != own.unk_id()]
    assert [own.id_to_piece(i) for i, _ in known] == [new.id_to_piece(i) for _, i in known]
    assert [own.get_score(i) for i, _ in known] == [new.get_score(i) for _, i in known]
    assert own.decode(before) == new.decode(after)


def test_no_text_holds_a_tag(models):
    _, new = models
    assert new.piece_to_id("<2de>") not in new.encode("a <2de> b")


def test_a_vocabulary_of_ours_is_known(tmp_path):
    train_vocabulary(LINES, tmp_path / "vocab.model", kind="bpe", size=320, languages=["de"])
    assert is_ours(spm.SentencePieceProcessor(model_file=str(tmp_path / "vocab.model")))
