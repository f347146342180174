"""Exported models against transformers, and models of transformers read back."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rounding import assert_close
from torch import Tensor

from mnmt_data.store import Vocabulary, train_vocabulary
from mnmt_model import RunError
from mnmt_model.export import export_hugging_face
from mnmt_model.export.t5_layout import hugging_face_name
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ModelConfig

pytest.importorskip("google.protobuf", reason="the extra `export` is not installed")
transformers = pytest.importorskip("transformers", reason="the extra `export` is not installed")

GATED = ModelConfig(encoder_layers=2, decoder_layers=3, d_model=32, num_heads=4, head_dim=6, d_ff=48)
CONFIGS = {
    "gated": GATED,
    "relu": replace(GATED, feed_forward="relu"),
    "even": ModelConfig(decoder_layers=2, d_model=16, num_heads=2, d_ff=24),
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    lines = [f"w{number} v{number % 7} and u{number % 13}" for number in range(60)]
    train_vocabulary(lines, path, kind="word", size=60, languages=["de"])
    return path


def make(config: ModelConfig, vocabulary: Path):
    model = build_model(config, Vocabulary.load(vocabulary).size)
    initialise(model, seed=3)
    return model.eval()


@pytest.fixture(scope="module", params=list(CONFIGS))
def model(request: pytest.FixtureRequest, vocabulary: Path):
    return make(CONFIGS[request.param], vocabulary)


@pytest.fixture(scope="module")
def folder(model, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "out"
    export_hugging_face(model.config, model.state_dict(), vocabulary, out)
    return out


@pytest.fixture
def gated(vocabulary: Path, tmp_path: Path) -> Path:
    """An export to be spoiled."""
    model = make(GATED, vocabulary)
    export_hugging_face(GATED, model.state_dict(), vocabulary, tmp_path / "gated")
    return tmp_path / "gated"


def pairs(vocab_size: int) -> tuple[Tensor, Tensor]:
    """Longer than the exact buckets and than the farthest distance, padded on both sides."""
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(2, vocab_size, (3, 150), generator=generator)
    tgt = torch.randint(2, vocab_size, (3, 140), generator=generator)
    src[1, 90:] = 0
    tgt[2, 17:] = 0
    return src, tgt


@torch.no_grad()
def logits_are_the_same(ours, theirs) -> None:
    src, tgt = pairs(ours.vocab_size)
    shifted = torch.nn.functional.pad(tgt[:, :-1], (1, 0))
    expected = theirs(input_ids=src, attention_mask=(src != 0).long(), decoder_input_ids=shifted).logits
    visible = (tgt != 0)[:, :, None]
    assert_close(ours.logits(src, tgt) * visible, expected * visible, ours, lambda: ours.logits(src, tgt))


def test_transformers_computes_the_same_logits(model, folder: Path) -> None:
    theirs, report = transformers.T5ForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    logits_are_the_same(model, theirs.eval())


def test_transformers_generates_what_is_likeliest(model, folder: Path) -> None:
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    src = torch.tensor([[3, 7, 8, 1]])
    result = theirs.generate(src, max_new_tokens=6)[:, 1:]
    expected = model.logits(src, result).argmax(-1)
    assert torch.equal(result, expected)


def test_the_tokenizer_loads(folder: Path, vocabulary: Path) -> None:
    tokenizer, vocab = transformers.AutoTokenizer.from_pretrained(folder), Vocabulary.load(vocabulary)
    text = "and w1 v1 strange words u3"
    assert tokenizer(f"<2de> {text}")["input_ids"] == [vocab.tag("de"), *vocab.encode([text])[0], 1]
    assert tokenizer.decode(tokenizer("<2de> w1 v1")["input_ids"], skip_special_tokens=True) == "w1 v1"
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert len(tokenizer) == vocab.size


def test_every_weight_has_a_name_of_transformers(model, folder: Path) -> None:
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(folder).state_dict()
    names = {hugging_face_name(name): name for name in model.state_dict()}
    assert set(names) == set(theirs) - {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"architecture": "prefix-lm"}, 'architecture = "encdec"'),
        ({"norm": "layer"}, 'norm = "rms"'),
        ({"norm_order": "post"}, 'norm_order = "pre"'),
        ({"norm_epsilon": 1e-5}, "norm_epsilon = 1e-06"),
        ({"positions": "sinusoidal"}, 'positions = "relative"'),
        ({"embeddings": "tied"}, 'embeddings = "shared"'),
        ({"biases": True}, "biases = false"),
        ({"scaled_attention": True, "biases": True}, "biases = false, scaled_attention = false"),
    ],
)
def test_other_parts_are_not_exported(
    vocabulary: Path, tmp_path: Path, changes: dict[str, object], needed: str
) -> None:
    config = replace(CONFIGS["even"], **changes)
    message = f"a dense model can be exported only in the layout of T5 1.1, which needs {needed} under"
    with pytest.raises(RunError, match=message):
        export_hugging_face(config, make(config, vocabulary).state_dict(), vocabulary, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_vocabulary_is_not_exported(vocabulary: Path, tmp_path: Path) -> None:
    model = build_model(GATED, 50)
    with pytest.raises(RunError, match=r"vocab.model: has \d+ tokens, but the model 50"):
        export_hugging_face(GATED, model.state_dict(), vocabulary, tmp_path / "out")
