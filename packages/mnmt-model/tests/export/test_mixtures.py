"""Mixtures of experts as NLLB-MoE and Switch Transformers: transformers computes what our model does."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_models import VOCAB_SIZE, random_model
from rounding import assert_close
from safetensors.torch import load_file, save_file
from torch import Tensor

from mnmt_data.store import EOS, PAD, open_prepared
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.export import certify, export_run
from mnmt_model.export.engines import transformers_scorer, transformers_translator
from mnmt_model.export.layouts import check_convertible, check_exportable, exported_weights, layout_of
from mnmt_model.runs.load import load_run
from mnmt_model.transformer.model_config import NLLB, ModelConfig

pytest.importorskip("mnmt_moe_ext", reason="the package mnmt-moe-ext is not installed")
pytest.importorskip("google.protobuf", reason="the extra `export` is not installed")
transformers = pytest.importorskip("transformers", reason="the extra `export` is not installed")

PARTS: dict[str, object] = {
    "encoder_layers": 2,
    "decoder_layers": 3,
    "d_model": 24,
    "num_heads": 3,
    "d_ff": 40,
    "num_experts": 5,
}
MIXTURE = ModelConfig(**PARTS, **NLLB)
SWITCH = ModelConfig(**PARTS, feed_forward="relu", experts_per_token=1, renormalise="never")


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, object]:
    num_heads, head_dim = draw(st.integers(1, 3)), draw(st.sampled_from([4, 6]))
    return {
        "encoder_layers": draw(st.integers(1, 3)),
        "decoder_layers": draw(st.integers(1, 3)),
        "d_model": num_heads * head_dim,
        "num_heads": num_heads,
        "d_ff": draw(st.integers(1, 20)),
        "num_experts": draw(st.integers(2, 6)),
        "capacity_factor": draw(st.sampled_from([0.5, 2.0])),
    }


@st.composite
def nllb_mixtures(draw: st.DrawFn) -> ModelConfig:
    """Any mixture that NLLB-MoE can express."""
    return replace(
        MIXTURE,
        **draw(sizes()),
        embeddings=draw(st.sampled_from(["shared", "tied", "tied-target", "separate"])),
        biases=draw(st.booleans()),
        experts_every=draw(st.integers(1, 3)),
        renormalise=draw(st.sampled_from(["before", "after"])),
    )


@st.composite
def switch_mixtures(draw: st.DrawFn) -> ModelConfig:
    """Any mixture that Switch Transformers can express."""
    config = replace(
        SWITCH, **draw(sizes()), head_dim=draw(st.integers(1, 6)), experts_every=draw(st.integers(1, 3))
    )
    assume(not list(layout_of(config).also_needed(config)))
    return config


mixtures = st.one_of(nllb_mixtures(), switch_mixtures())


def load(config: ModelConfig, weights: dict[str, Tensor], folder: Path) -> transformers.PreTrainedModel:
    """What transformers makes of the layout's files."""
    check_exportable(config)
    layout = layout_of(config)
    (folder / "config.json").write_text(json.dumps(layout.json_config(config, VOCAB_SIZE)))
    save_file(exported_weights(config, weights), folder / "model.safetensors", {"format": "pt"})
    model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values())
    return model.eval()


def sentences(seed: int, *, batch: int = 4, width: int = 30) -> Tensor:
    """Random ids with padding, at least one token a row; no target goes on after `</s>`."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(EOS + 1, VOCAB_SIZE, (batch, width), generator=generator)
    lengths = torch.randint(1, width + 1, (batch, 1), generator=generator)
    lengths[0] = width
    return ids.masked_fill(torch.arange(width) >= lengths, PAD)


@given(config=mixtures, seed=st.integers(0, 99))
def test_transformers_computes_the_same_log_probabilities(
    tmp_path_factory: pytest.TempPathFactory, config: ModelConfig, seed: int
) -> None:
    model = random_model(config).eval()
    theirs = load(config, model.state_dict(), tmp_path_factory.mktemp("model"))
    src, tgt = sentences(seed), sentences(seed + 1)
    expected = torch.from_numpy(transformers_scorer(theirs)(src.numpy(), tgt.numpy()))

    @torch.no_grad()
    def log_probs() -> Tensor:
        result = model.logits(src, tgt).log_softmax(2).gather(2, tgt[:, :, None]).squeeze(2)
        return result.masked_fill(tgt == PAD, 0.0).double()

    assert_close(log_probs(), expected, model, log_probs)


@pytest.mark.slow
@given(config=mixtures, seed=st.integers(0, 99))
@settings(max_examples=8)
def test_what_transformers_generates_is_our_best(
    tmp_path_factory: pytest.TempPathFactory, config: ModelConfig, seed: int
) -> None:
    """One token at a time, with stored keys and values where the class can store them."""
    model = random_model(config).eval()
    theirs = load(config, model.state_dict(), tmp_path_factory.mktemp("model"))
    theirs.generation_config.use_cache = theirs.config.use_cache
    src = sentences(seed, width=9)
    translations = torch.from_numpy(transformers_translator(theirs)(src.numpy()))
    tgt = torch.full((len(src), 1), EOS)
    for position in range(12):
        # The last token is not read, whatever it is.
        logits = model.logits(src, tgt)[:, position].detach()
        logits[:, PAD] = -torch.inf
        tgt = torch.cat([tgt[:, :position], logits.argmax(1)[:, None], tgt[:, :1]], dim=1)
    for ours, row in zip(tgt[:, :12].tolist(), translations.tolist(), strict=True):
        length = ours.index(EOS) + 1 if EOS in ours else 12
        assert row[:length] == ours[:length]


@pytest.mark.parametrize(
    ("config", "copies"),
    [
        (replace(MIXTURE, embeddings="separate"), ["model.shared.weight"]),
        (SWITCH, ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]),
    ],
    ids=["nllb", "switch"],
)
def test_every_number_of_a_model_is_exported_once(config: ModelConfig, copies: list[str]) -> None:
    model = random_model(config)
    exported = exported_weights(config, model.state_dict())
    for name in copies:
        del exported[name]
    values = torch.cat([tensor.flatten() for tensor in exported.values()])
    ours = torch.cat([tensor.flatten() for tensor in model.parameters()])
    # Experts have no biases.
    assert torch.equal(values[values != 0].sort().values, ours.sort().values)


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"norm": "rms"}, 'norm = "layer"'),
        ({"norm_order": "post"}, 'norm_order = "pre"'),
        ({"norm_epsilon": 1e-6}, "norm_epsilon = 1e-05"),
        ({"positions": "relative"}, 'positions = "sinusoidal-fairseq"'),
        ({"positions": "sinusoidal"}, 'positions = "sinusoidal-fairseq"'),
        ({"feed_forward": "gated-gelu"}, 'feed_forward = "relu"'),
        ({"scaled_attention": False}, "scaled_attention = true"),
        ({"head_dim": 6}, "head_dim = d_model / num_heads"),
        ({"architecture": "prefix-lm", "encoder_layers": None}, 'architecture = "encdec"'),
        ({"experts_per_token": 3}, "experts_per_token = 2"),
        ({"expert_feed_forward": "gated-silu"}, 'expert_feed_forward = "relu"'),
        ({"shared_experts": 1}, "shared_experts = 0"),
        ({"eval_capacity_factor": 2.0}, "eval_capacity_factor = 0.0"),
        ({"renormalise": "never"}, 'renormalise = "before"'),
    ],
)
def test_another_mixture_is_refused_with_what_it_needs(changes: dict[str, object], needed: str) -> None:
    config = replace(MIXTURE, **changes)
    with pytest.raises(RunError) as error:
        check_exportable(config)
    assert str(error.value) == (
        f"a mixture of experts can be exported only in the layout of NLLB-MoE, which needs {needed} "
        "under [model]"
    )


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"norm": "layer"}, 'norm = "rms"'),
        ({"embeddings": "tied"}, 'embeddings = "shared"'),
        ({"feed_forward": "gated-gelu"}, 'feed_forward = "relu"'),
        ({"shared_experts": 1}, "shared_experts = 0"),
        ({"experts_every": 3}, "experts_every = 2"),
        ({"decoder_layers": 1}, "experts_every = 1"),
    ],
)
def test_another_mixture_of_one_expert_a_token_is_refused(changes: dict[str, object], needed: str) -> None:
    config = replace(SWITCH, **changes)
    with pytest.raises(RunError, match=f"layout of Switch Transformers, which needs {needed} under"):
        check_exportable(config)


def test_all_that_a_mixture_needs_is_named_at_once() -> None:
    config = ModelConfig(num_experts=4)
    with pytest.raises(RunError, match=r'norm = "layer", norm_epsilon = 1e-05, positions = .*scaled_att'):
        check_exportable(config)


@pytest.mark.parametrize("config", [MIXTURE, SWITCH], ids=["nllb", "switch"])
def test_gates_that_choose_by_biases_are_refused(config: ModelConfig) -> None:
    weights, name = random_model(config).state_dict(), "encoder.layers.1.feed_forward.gate.balance_bias"
    bias = torch.zeros(config.num_experts)
    check_exportable(config, {**weights, name: bias})
    assert (
        exported_weights(config, {**weights, name: bias}).keys() == exported_weights(config, weights).keys()
    )
    bias[2] = 1e-3
    with pytest.raises(RunError, match=r"which needs balance_bias_rate = 0 under \[train\]$"):
        check_exportable(config, {**weights, name: bias})
    changed = replace(config, shared_experts=1)
    with pytest.raises(
        RunError, match=r"needs shared_experts = 0 under \[model\] and balance_bias_rate = 0 under \[train\]$"
    ):
        check_exportable(changed, {**weights, name: bias})


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained mixture."""
    config: RunConfig = run_configs(read_study(study_file), results / "data")[1]
    model = replace(MIXTURE, d_model=16, num_heads=2, d_ff=32, num_experts=4)
    folder = tmp_path_factory.mktemp("runs") / "mixture"
    train(replace(config, model=model), folder)
    return folder


def test_a_run_is_exported_with_a_certificate(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    certificate = export_run(run, out, pairs=40)
    assert certificate.engines == ("transformers",)
    assert certificate.worst("transformers").relative_difference("transformers") < 1e-5
    assert max(each.gap for each in certificate.translations) < 1e-5
    assert len(certificate.translations) == 16
    assert "NllbMoe" in type(transformers.AutoModelForSeq2SeqLM.from_pretrained(out)).__name__
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    assert tokenizer("<2aa>")["input_ids"][-1] == EOS


def test_ctranslate2_has_no_mixtures() -> None:
    with pytest.raises(RunError, match="CTranslate2 has no mixtures of experts, but `num_experts` is 4"):
        check_convertible(ModelConfig(num_experts=4))


def test_a_wrong_weight_is_caught(run: Path, results: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "out", pairs=4)
    weights = load_file(tmp_path / "out" / "model.safetensors")
    weights["model.encoder.layers.1.ffn.router.classifier.weight"].neg_()
    save_file(weights, tmp_path / "out" / "model.safetensors", {"format": "pt"})
    model = load_run(run).model.translation_model
    certificate = certify(model, tmp_path / "out", open_prepared(results / "data"), pairs=40)
    assert len(certificate.changed_weights) == 1
    assert any("under transformers" in failure for failure in certificate.failures)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"moe_token_dropout": 0.2},
        {"moe_eval_capacity_token_fraction": 0.05},
        {"scale_embedding": False},
        {"decoder_start_token_id": PAD},
        {"decoder_sparse_step": 0},
    ],
)
def test_another_config_is_caught(
    run: Path, results: Path, tmp_path: Path, changes: dict[str, object]
) -> None:
    export_run(run, tmp_path / "out", pairs=4)
    path = tmp_path / "out" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    model = load_run(run).model.translation_model
    certificate = certify(model, tmp_path / "out", open_prepared(results / "data"), pairs=40)
    assert any("log-probability" in failure for failure in certificate.failures)


def test_the_checkpoint_is_not_changed(run: Path, tmp_path: Path) -> None:
    before = load_file(find_checkpoints(run / "checkpoints")[-1] / "model.safetensors")
    export_run(run, tmp_path / "out", pairs=4)
    after = load_file(find_checkpoints(run / "checkpoints")[-1] / "model.safetensors")
    assert all(torch.equal(before[name], after[name]) for name in before)
