"""The certificate: it holds for a true export, and fails for every false one."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_training import fake_runs
from safetensors.torch import load_file, save_file

from mnmt_data.store import PreparedData, open_prepared
from mnmt_model import RunError
from mnmt_model.checkpoints.checkpoint_folders import CHECKPOINTS, checkpoint_name
from mnmt_model.checkpoints.state import MODEL, Progress, State, record_file, write_state
from mnmt_model.export import Certificate, certify, conversion, export_hugging_face, export_run
from mnmt_model.export.certificate import OURS
from mnmt_model.runs import new_record
from mnmt_model.runs.run_record import Eval, append_evals, read_run, write_run
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ModelConfig

pytest.importorskip("google.protobuf", reason="the extra `export` is not installed")
pytest.importorskip("transformers", reason="the extra `export` is not installed")
pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

CONFIG = ModelConfig(encoder_layers=2, decoder_layers=2, d_model=16, num_heads=2, head_dim=6, d_ff=32)


@pytest.fixture(scope="module")
def data(results: Path) -> PreparedData:
    return open_prepared(results / "data")


@pytest.fixture(scope="module")
def model(data: PreparedData):
    model = build_model(CONFIG, data.vocab.size)
    initialise(model, seed=3)
    return model.eval()


@pytest.fixture
def folder(model, data: PreparedData, tmp_path: Path) -> Path:
    export_hugging_face(CONFIG, model.state_dict(), data.folder / "vocab.model", tmp_path / "hf")
    return tmp_path / "hf"


@pytest.fixture
def run(model, data: PreparedData, tmp_path: Path) -> Path:
    """A run of the study whose weights are the model's."""
    folder, (config,) = tmp_path / "run", fake_runs(1)
    checkpoint = folder / CHECKPOINTS / checkpoint_name(0)
    checkpoint.mkdir(parents=True)
    file = checkpoint / f"{MODEL}.safetensors"
    save_file(model.state_dict(), file)
    progress = Progress(step=0, tokens=0, flops=0, stream={})
    write_state(checkpoint, State(progress=progress, files={file.name: record_file(file)}))
    config = replace(config, model=CONFIG, data=data.folder)
    write_run(folder, new_record(config, folder, vocab_size=data.vocab.size, data=None))
    return folder


def test_a_run_is_exported_with_a_certificate(run: Path, model, data: PreparedData, tmp_path: Path) -> None:
    out = tmp_path / "out"
    certificate = export_run(run, out, pairs=15)
    assert certificate.failures == ()
    content = json.loads((out / "certificate.json").read_text())
    assert content["agrees"] is True
    # Two tasks with a test set each: as many of both.
    assert content["num_pairs"] == 16
    assert [(pair["task"], pair["row"]) for pair in content["pairs"][6:9]] == [
        ("xx-aa", 6),
        ("xx-aa", 7),
        ("xx-bb", 0),
    ]
    for engine in ("transformers", "ctranslate2"):
        assert content["engines"][engine]["largest_relative_difference"] < 1e-5
    assert content["tokenizer"]["equal"] == 32
    assert {"transformers", "ctranslate2", "torch"} <= content["versions"].keys()
    assert "**Agrees.** Under transformers and ctranslate2" in (out / "README.md").read_text()
    assert (out / "ctranslate2" / "model.bin").is_file()
    assert not (tmp_path / "out.failed").exists()


def test_the_hub_reads_the_model_card(run: Path, tmp_path: Path) -> None:
    write_run(run, replace(read_run(run), study="office", mixture={"xx-aa": 0.75, "xx-bb": 0.25}))
    measurements = {
        ("test", "xx-aa", "bleu", 0): 31.25,
        ("test", "xx-bb", "bleu", 0): 21.5,
        ("dev", "xx-aa", "loss", 0): 1.5,  # The text that stopped or chose the model measures nothing.
        ("test", "xx-aa", "loss", 5): 1.25,  # Another step is another model.
    }
    append_evals(
        run,
        [
            Eval(step=step, tokens=1, flops=1, task=task, testset=testset, metric=metric, value=value,
                 signature="by hand")
            for (testset, task, metric, step), value in measurements.items()
        ],
    )  # fmt: skip
    export_run(run, tmp_path / "out", pairs=2)
    from huggingface_hub import ModelCard

    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert card.data.pipeline_tag == "translation"
    assert card.data.language == ["aa", "bb", "xx"]
    bleu = {result.dataset_name: result.metric_value for result in card.data.eval_results}
    assert bleu == {"office test xx-aa": 31.25, "office test xx-bb": 21.5}
    assert "<2aa> Text to translate." in card.text
    (code,) = re.findall(r"```python\n(.*?)```", card.text, re.DOTALL)
    exec(code, {"FOLDER": str(tmp_path / "out"), "print": lambda lines: None})


def test_log_probabilities_are_those_of_the_logits(model, folder: Path, data: PreparedData) -> None:
    certificate = certify(model, folder, data, pairs=6)
    shard = data.shard("test", "xx-bb")
    pair = certificate.pairs[-1]
    assert (pair.testset, pair.task, pair.row) == ("test", "xx-bb", 2)
    src, tgt = (torch.from_numpy(side.padded(np.array([2]))) for side in shard.gather(np.arange(3)))
    log_probs = model.logits(src, tgt).detach().log_softmax(-1)
    expected = log_probs.gather(2, tgt[:, :, None]).sum()
    assert pair.log_probs[OURS] == pytest.approx(float(expected), rel=1e-6)
    assert pair.tokens == tgt.size(1)


def spoil(folder: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, name: change(weights[name])}, folder / "model.safetensors", {"format": "pt"})


def one_more(weight: torch.Tensor) -> torch.Tensor:
    changed = weight.clone()
    changed.view(-1)[0] += 0.5
    return changed


@pytest.mark.parametrize(
    "name",
    [
        "decoder.block.1.layer.1.EncDecAttention.q.weight",
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "encoder.block.1.layer.1.layer_norm.weight",
        "lm_head.weight",
    ],
)
def test_a_wrong_weight_is_caught(model, folder: Path, data: PreparedData, name: str) -> None:
    spoil(folder, name, one_more)
    certificate = certify(model, folder, data, pairs=10)
    changed, engine, *_ = certificate.failures
    assert "differs from the checkpoint's" in changed
    assert "under transformers" in engine
    # The log-probabilities tell by themselves.
    assert replace(certificate, changed_weights=()).failures[0] == engine


def test_a_weight_that_no_test_pair_reads_is_caught(model, folder: Path, data: PreparedData) -> None:
    # The last word of the vocabulary is in no source of the first pair, and the change is of a bit or two.
    spoil(folder, "shared.weight", lambda weight: torch.cat([weight[:-1], weight[-1:] * (1 + 1e-6)]))
    certificate = certify(model, folder, data, pairs=1)
    assert certificate.changed_weights == ("shared.weight",)
    assert certificate.failures == ("shared.weight differs from the checkpoint's",)


def test_a_generation_that_begins_otherwise_is_caught(model, folder: Path, data: PreparedData) -> None:
    """Scores do not read generation_config.json."""
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"decoder_start_token_id": 7}))
    (failure,) = certify(model, folder, data, pairs=4).failures
    assert re.fullmatch(
        r"the greedy translation of line \d of test.xx-(aa|bb) under transformers has a token that is "
        r"\S+ nats below mnmt-model's best",
        failure,
    )


def test_another_vocabulary_is_caught(model, folder: Path, data: PreparedData) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words[-1][0], words[5][0] = words[5][0], words[-1][0]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (failure,) = certify(model, folder, data, pairs=40).failures
    assert "the tokenizer gives other ids for" in failure


def test_what_fails_is_kept_apart(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that scales the logits of T5 1.1, as CTranslate2's does of tied embeddings."""
    convert = conversion.convert_to_ctranslate2

    def scaled(folder: Path, out: Path) -> None:
        spoil(folder, "lm_head.weight", lambda weight: weight / 4)
        convert(folder, out)
        spoil(folder, "lm_head.weight", lambda weight: weight * 4)

    monkeypatch.setattr(conversion, "convert_to_ctranslate2", scaled)
    with pytest.raises(
        RunError, match=r"out.failed: does not agree .* line \d+ of test.xx-.*under ctranslate2"
    ):
        export_run(run, tmp_path / "out", pairs=4)
    assert not (tmp_path / "out").exists()
    content = json.loads((tmp_path / "out.failed" / "certificate.json").read_text())
    assert content["agrees"] is False
    assert "**Does not agree.**" in (tmp_path / "out.failed" / "README.md").read_text()


def test_a_missing_extra_is_named(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        RunError, match=r"exporting needs transformers: pip install './packages/mnmt-model\[export\]'"
    ):
        export_run(run, tmp_path / "out")


def test_a_certificate_knows_its_worst_pair(model, folder: Path, data: PreparedData) -> None:
    certificate: Certificate = certify(model, folder, data, pairs=4)
    wrong = replace(certificate.pairs[2], log_probs={OURS: -10.0, "transformers": -10.1})
    pairs = (*certificate.pairs[:2], wrong, *certificate.pairs[3:])
    (failure,) = replace(certificate, pairs=pairs).failures
    assert failure == f"{wrong.location} has log-probability -10, but -10.1 under transformers"
    assert wrong.relative_difference("transformers") == pytest.approx(0.01)
    certain = replace(wrong, log_probs={OURS: -1e-4, "transformers": -1.5e-4})
    assert certain.relative_difference("transformers") == pytest.approx(5e-5)
