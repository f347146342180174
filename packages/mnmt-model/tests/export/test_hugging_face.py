"""Exported models against transformers, and models of transformers read back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rounding import assert_close
from safetensors.torch import load_file, save_file
from torch import Tensor

from mnmt_data.store import Vocabulary, train_vocabulary
from mnmt_model import RunError
from mnmt_model.export import export_hugging_face, import_run, read_hugging_face
from mnmt_model.export.t5_layout import hugging_face_name
from mnmt_model.runs.load import load_run
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


def test_reading_back_gives_the_same_bits(model, folder: Path) -> None:
    config, vocab_size, weights = read_hugging_face(folder)
    assert replace(config, encoder_layers=None) == replace(
        model.config, encoder_layers=None, head_dim=config.resolved_head_dim
    )
    assert config.num_encoder_layers == model.config.num_encoder_layers
    assert vocab_size == model.vocab_size
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("shard_size", ["1GB", "20KB"])
def test_a_model_of_transformers_is_read(tmp_path: Path, shard_size: str) -> None:
    config = transformers.T5Config(
        vocab_size=50,
        d_model=32,
        d_kv=6,
        d_ff=48,
        num_layers=2,
        num_decoder_layers=1,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        dropout_rate=0.0,
    )
    torch.manual_seed(1)
    theirs = transformers.T5ForConditionalGeneration(config).eval()
    theirs.save_pretrained(tmp_path, max_shard_size=shard_size)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard_size == "20KB")
    ours_config, vocab_size, weights = read_hugging_face(tmp_path)
    ours = build_model(ours_config, vocab_size)
    ours.load_state_dict(weights)
    logits_are_the_same(ours.eval(), theirs)


def test_an_imported_model_is_a_run(gated: Path, tmp_path: Path) -> None:
    checkpoint = import_run(gated, tmp_path / "run")
    assert checkpoint == tmp_path / "run" / "checkpoints" / "step-00000000"
    loaded = load_run(tmp_path / "run")
    weights = read_hugging_face(gated)[2]
    assert all(
        torch.equal(weights[name], w) for name, w in loaded.model.translation_model.state_dict().items()
    )
    assert (loaded.data / "vocab.model").read_bytes() == (gated / "spiece.model").read_bytes()
    assert loaded.record.status == "finished"
    with pytest.raises(RunError, match="exists already"):
        import_run(gated, tmp_path / "run")


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "mt5"},
            'config.json: `model_type` is "mt5", but only models with "t5" can be imported',
        ),
        ({"tie_word_embeddings": True}, "`tie_word_embeddings` is true, but only models with false"),
        ({"tie_word_embeddings": None}, "`tie_word_embeddings` is true"),
        ({"feed_forward_proj": "gated-silu"}, '`feed_forward_proj` is "gated-silu"'),
        ({"is_gated_act": False}, "`is_gated_act` is false, but only models with true"),
        ({"dense_act_fn": "gelu"}, '`dense_act_fn` is "gelu", but only models with "gelu_new"'),
        ({"layer_norm_epsilon": 1e-5}, "`layer_norm_epsilon` is 1e-05"),
        ({"relative_attention_num_buckets": 64}, "`relative_attention_num_buckets` is 64"),
        ({"relative_attention_max_distance": 64}, "`relative_attention_max_distance` is 64"),
        ({"decoder_start_token_id": 1}, "`decoder_start_token_id` is 1"),
        ({"d_ff": None}, "config.json: `d_ff` is missing"),
        ({"num_heads": 0}, "config.json: `num_heads` must be at least 1, but is 0"),
        ({"d_ff": 40}, r"wi_0.weight must be \(40, 32\), but is \(48, 32\)"),
        ({"num_layers": 3}, "lacks encoder.block.2"),
        ({"num_layers": 1}, "holds encoder.block.1.*, which config.json does not describe"),
    ],
)
def test_other_models_are_not_imported(gated: Path, changes: dict[str, object], message: str) -> None:
    content = json.loads((gated / "config.json").read_text())
    content = {name: value for name, value in {**content, **changes}.items() if value is not None}
    (gated / "config.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=message):
        read_hugging_face(gated)


def test_transformers_5s_word_for_untied_embeddings_is_understood(gated: Path) -> None:
    expected = read_hugging_face(gated)[0]
    content = json.loads((gated / "config.json").read_text())
    content |= {"tie_word_embeddings": True, "scale_decoder_outputs": False}
    (gated / "config.json").write_text(json.dumps(content))
    assert read_hugging_face(gated)[0] == expected


def test_tied_embeddings_whose_logits_are_not_scaled_are_two_equal_ones(gated: Path) -> None:
    weights = load_file(gated / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, gated / "model.safetensors")
    with pytest.raises(RunError, match=r"lacks lm_head.weight"):
        read_hugging_face(gated)
    content = json.loads((gated / "config.json").read_text())
    content |= {"tie_word_embeddings": True, "scale_decoder_outputs": False}
    (gated / "config.json").write_text(json.dumps(content))
    assert torch.equal(read_hugging_face(gated)[2]["softmax.weight"], weights["shared.weight"])


def with_weights(folder: Path, **changes: Tensor) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, **changes}, folder / "model.safetensors")


def test_copies_of_the_embedding_must_be_copies(gated: Path) -> None:
    embedding = load_file(gated / "model.safetensors")["shared.weight"]
    with_weights(gated, **{"encoder.embed_tokens.weight": embedding.clone()})
    assert torch.equal(read_hugging_face(gated)[2]["embedding.weight"], embedding)
    with_weights(gated, **{"decoder.embed_tokens.weight": embedding + 1})
    with pytest.raises(RunError, match=r"decoder.embed_tokens.weight differs from shared.weight"):
        read_hugging_face(gated)


def test_an_unknown_weight_is_refused(gated: Path) -> None:
    with_weights(gated, **{"classifier.weight": torch.zeros(2)})
    with pytest.raises(RunError, match=r"holds classifier.weight, which config.json does not describe"):
        read_hugging_face(gated)


def test_a_broken_or_missing_file_is_named(gated: Path) -> None:
    (gated / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(RunError, match=r"model.safetensors: cannot be read"):
        read_hugging_face(gated)
    (gated / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"must hold model.safetensors or model.safetensors.index.json"):
        read_hugging_face(gated)
    (gated / "config.json").unlink()
    with pytest.raises(RunError, match=r"config.json: no such file"):
        read_hugging_face(gated)
