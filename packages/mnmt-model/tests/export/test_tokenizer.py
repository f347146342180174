"""The exported tokenizer against SentencePiece."""

import io
import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import sentencepiece as spm

from mnmt_data.store import EOS, UNK, Vocabulary, train_vocabulary
from mnmt_model import RunError
from mnmt_model.export.tokenizer import read_sentencepiece, tokenizer
from mnmt_model.export.tokenizer_check import TokenizerCheck, add_tags, check_sentences

pytest.importorskip("google.protobuf", reason="the extra `export` is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the extra `export` is not installed")

SYLLABLES = ["ba", "ko", "ři", "de", "ü", "ss", "tion", "x", "你", "好", "'s", "ra"]
KINDS = [("unigram", True), ("unigram", False), ("bpe", True), ("bpe", False), ("word", False)]
CHARACTERS = "abkořß .,-<>/…é。你  ▁\t\u00a0\u200b😀zq"


def corpus(seed: int, lines: int) -> list[str]:
    """Words of syllables, the earlier ones of a list more often."""
    rng = random.Random(seed)
    lexicon = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(300)]
    weights = [1 / (rank + 1) for rank in range(len(lexicon))]
    return [" ".join(rng.choices(lexicon, weights, k=rng.randint(1, 9))) for _ in range(lines)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}{'-bytes' * kind[1]}")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kind, byte_fallback = request.param
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    size = 400 if byte_fallback else 150
    train_vocabulary(
        corpus(1, 500), path, kind=kind, size=size, languages=["de", "pt_BR"], byte_fallback=byte_fallback
    )
    return path


def exported(model: Path):
    return tokenizers.Tokenizer.from_str(json.dumps(tokenizer(read_sentencepiece(model))))


def strange_lines() -> list[str]:
    """Unknown characters and words in a row, spaces of all kinds at all places."""
    rng = random.Random(2)
    noise = ["".join(rng.choices(CHARACTERS, k=rng.randrange(0, 20))) for _ in range(1500)]
    words = " ".join(corpus(1, 100)).split()
    spaced = [
        rng.choice([" ", "  ", " ▁"]).join(rng.choice(words) + rng.choice(["", "", "zzq"]) for _ in range(6))
        for _ in range(500)
    ]
    return ["", " ", "▁", "zzq zzq zzq", " a  b ", *noise, *spaced]


def different(model: Path, lines: list[str]) -> TokenizerCheck:
    """What the exported tokenizer makes of tagged lines."""
    vocab, found = Vocabulary.load(model), exported(model)
    check, tag = TokenizerCheck(), vocab.tag("pt_BR")
    for place in ("first", "last"):
        ids = [
            [tag, *row, EOS] if place == "first" else [*row, tag, EOS]
            for row in map(list, vocab.encode(lines))
        ]
        encode = lambda texts: [encoding.ids for encoding in found.encode_batch(list(texts))]  # noqa: E731
        check_sentences(check, read_sentencepiece(model), encode, lines, ids)
    return check


@pytest.mark.parametrize("lines", [corpus(3, 2000), strange_lines()], ids=["corpus", "strange"])
def test_ids_are_sentencepieces(model: Path, lines: list[str]) -> None:
    check = different(model, lines)
    assert check.different == []
    assert check.literal == 0
    # Equal scores are rounded otherwise in a few lines, and only by a Unigram model.
    most = len(lines) // 100 if read_sentencepiece(model).trainer_spec.model_type == 1 else 0
    assert check.tie <= most
    assert check.equal + check.tie == 2 * len(lines)


def test_text_comes_back(model: Path) -> None:
    vocab, found = Vocabulary.load(model), exported(model)
    for line in corpus(3, 200):
        ids = found.encode(f"<2de> {line}").ids
        if UNK not in ids:
            assert found.decode(ids) == line == vocab.decode(ids)


def test_tags_are_written_where_the_ids_have_them(model: Path) -> None:
    vocab, proto = Vocabulary.load(model), read_sentencepiece(model)
    tag, (text,) = vocab.tag("de"), vocab.encode(["ba ko"])
    assert add_tags(proto, "ba ko", [tag, *text, EOS]) == "<2de> ba ko"
    assert add_tags(proto, "ba ko", [*text, tag, EOS]) == "ba ko <2de>"
    assert add_tags(proto, " ba  ko", [*text, EOS]) == " ba  ko"


def train(tmp_path: Path, **options: object) -> Path:
    content = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus(1, 500)),
        model_writer=content,
        **{"vocab_size": 120, "hard_vocab_limit": False, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
        minloglevel=2,
        **options,
    )
    (tmp_path / "vocab.model").write_bytes(content.getvalue())
    return tmp_path / "vocab.model"


def test_a_vocabulary_with_normalisation(tmp_path: Path) -> None:
    path = train(tmp_path, normalization_rule_name="nmt_nfkc")
    vocab, found = Vocabulary.load(path), exported(path)
    for line in ("ba， ko", "ﬁba\tko", "① ba\u3000ko ", "\u00a0ba"):
        assert found.encode(line).ids == [*vocab.encode([line])[0].tolist(), EOS]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "char"}, "its `model_type` is 4"),
        ({"treat_whitespace_as_suffix": True}, "its `treat_whitespace_as_suffix` is True"),
        ({"add_dummy_prefix": False}, "its `add_dummy_prefix` is False"),
        ({"remove_extra_whitespaces": False}, "its `remove_extra_whitespaces` is False"),
    ],
)
def test_what_tokenizers_cannot_express_is_refused(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        read_sentencepiece(train(tmp_path, **options))


@pytest.mark.parametrize(
    ("found", "kind"), [([4, 3, 1], "tie"), ([5, 1], "num_different"), ([3, 4, 1], "equal")]
)
def test_outcomes_are_told_apart(found: list[int], kind: str) -> None:
    scores = {"<pad>": 0, "</s>": 0, "<unk>": 0, "9": -3, "99": -4, "999": -8}
    pieces = [SimpleNamespace(piece=piece, score=score, type=1) for piece, score in scores.items()]
    proto = SimpleNamespace(pieces=pieces, trainer_spec=SimpleNamespace(model_type=1))
    check = TokenizerCheck()
    check_sentences(check, proto, lambda texts: [found], ["999"], [[3, 4, 1]])
    assert getattr(check, kind) == 1
    assert check.equal + check.tie + check.literal + check.num_different == 1
