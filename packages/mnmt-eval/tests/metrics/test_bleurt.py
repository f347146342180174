from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import bleurt_pytorch
import pytest
import torch
from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer
from safetensors.torch import load_file, save_file
from sentencepiece import SentencePieceTrainer

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import BleurtConfig, Metric, MetricConfig, bootstrap, metric

HYPOTHESES = ["the dog sleeps", "it rains", "", "the cat and the dog and the cat sleep here " * 9, "no"]
REFERENCES = ["a dog sleeps", "it has rained for days", "fine", "the cats and dogs sleep", "no"]
POSITIONS = 48


def save_vocabulary(folder: Path, kind: str) -> int:
    """A tiny vocabulary as BLEURT-20 has it (SentencePiece) or as older ones do (WordPiece); its size."""
    if kind == "wordpiece":
        pieces = [
            "[PAD]",
            "[UNK]",
            "[CLS]",
            "[SEP]",
            "[MASK]",
            *"abcdefghinrst",
            *(f"##{c}" for c in "adefghinopst"),
        ]
        (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
        return len(pieces)
    text = folder / "text"
    text.write_text("\n".join([*HYPOTHESES, *REFERENCES] * 3), encoding="utf-8")
    ids = {f"{name}_id": i for i, name in enumerate(("pad", "bos", "eos", "unk"))}
    pieces = {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
    SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "spm"),
        vocab_size=40,
        hard_vocab_limit=False,
        user_defined_symbols=["[MASK]"],
        minloglevel=2,
        **ids,
        **pieces,
    )
    return 40


@pytest.fixture(params=["sentencepiece", "wordpiece"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A tiny BLEURT with random weights."""
    folder = tmp_path / "BLEURT-tiny"
    folder.mkdir()
    size = save_vocabulary(folder, request.param)
    torch.manual_seed(1)
    config = bleurt_pytorch.BleurtConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
        initializer_range=0.5,
    )
    BleurtForSequenceClassification(config).save_pretrained(folder)
    return folder


def bleurt(checkpoint: Path | None) -> Metric:
    config = BleurtConfig(checkpoint=checkpoint)
    return metric("bleurt", target="de", config=MetricConfig(bleurt=config))


def one_at_a_time(checkpoint: Path) -> list[float]:
    """Scores as bleurt-pytorch's own page computes them, a sentence at a time."""
    tokenizer = BleurtTokenizer.from_pretrained(checkpoint)
    model = BleurtForSequenceClassification.from_pretrained(checkpoint).eval()
    scores = []
    for reference, hypothesis in zip(REFERENCES, HYPOTHESES, strict=True):
        inputs = tokenizer(
            [reference], [hypothesis], truncation=True, max_length=POSITIONS, return_tensors="pt"
        )
        with torch.no_grad():
            scores += model(**inputs).logits.flatten().tolist()
    return scores


@pytest.mark.parametrize("batch_sentences", [1, 2, 32])
def test_scores_are_the_models_whatever_the_batches(
    checkpoint: Path, batch_sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnmt_eval.metrics.bleurt_model.BATCH_SENTENCES", batch_sentences)
    expected = one_at_a_time(checkpoint)
    scorer = bleurt(checkpoint)
    statistics = scorer.sentence_statistics(HYPOTHESES, [REFERENCES])
    assert scorer.sentence_scores(statistics).tolist() == pytest.approx(expected, abs=1e-5)
    assert scorer.corpus(statistics).value == pytest.approx(sum(expected) / len(expected), abs=1e-5)
    assert len(set(expected)) == len(expected)
    assert bootstrap(scorer, statistics).half_width > 0


def test_the_signature_names_the_checkpoint_and_its_weights(checkpoint: Path) -> None:
    digest = sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()[:12]
    installed = version("bleurt-pytorch")
    expected = f"nrefs:1|model:BLEURT-tiny|sha256:{digest}|version:bleurt-pytorch-{installed}"
    assert bleurt(checkpoint).signature == expected


def without_weight(checkpoint: Path) -> None:
    path = checkpoint / "model.safetensors"
    weights = load_file(path)
    del weights["classifier.weight"]
    save_file(weights, path, metadata={"format": "pt"})


def without_vocabulary(checkpoint: Path) -> None:
    for name in ("spm.model", "vocab.txt"):
        (checkpoint / name).unlink(missing_ok=True)


def with_broken_weights(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").write_bytes(b"no weights")


def of_another_size(checkpoint: Path) -> None:
    path = checkpoint / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "hidden_size": 32}), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_weight, r"BLEURT-tiny: the BLEURT checkpoint lacks 1 weights, such as classifier\.weight\."),
        (without_vocabulary, r"BLEURT-tiny: the BLEURT checkpoint cannot be loaded: "),
        (with_broken_weights, r"BLEURT-tiny: the BLEURT checkpoint cannot be loaded: "),
        (of_another_size, r"BLEURT-tiny: the BLEURT checkpoint cannot be loaded: "),
    ],
)
def test_a_broken_checkpoint_is_told(checkpoint: Path, change: object, message: str) -> None:
    assert callable(change)
    change(checkpoint)
    with pytest.raises(EvalError, match=message) as caught:
        bleurt(checkpoint).score(HYPOTHESES, [REFERENCES])
    assert "\n" not in str(caught.value)


def test_a_missing_checkpoint_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"bleurt: must have `checkpoint`, the folder of a model"):
        bleurt(None)
    with pytest.raises(
        EvalError, match=r"no BLEURT checkpoint, which has config\.json and model\.safetensors or"
    ):
        bleurt(tmp_path)


@pytest.mark.parametrize("missing", ["bleurt-pytorch", "transformers"])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    hide_version(monkeypatch, missing, None)
    with pytest.raises(
        EvalError, match=rf"bleurt: {missing} is missing; `pip install './packages/mnmt-eval\[bleurt\]'`"
    ):
        bleurt(tmp_path)


def test_a_transformers_that_is_too_new_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_version(monkeypatch, "transformers", "5.1.0")
    with pytest.raises(EvalError, match=r"needs transformers below 5, but 5\.1\.0 is installed"):
        bleurt(tmp_path)


def hide_version(monkeypatch: pytest.MonkeyPatch, package: str, pretended: str | None) -> None:
    """Let a package seem to be of another version, or not to be there."""
    from importlib.metadata import PackageNotFoundError

    def seeming(name: str) -> str:
        if name != package:
            return version(name)
        if pretended is None:
            raise PackageNotFoundError(name)
        return pretended

    monkeypatch.setattr("mnmt_eval.metrics.bleurt.version", seeming)


def test_torch_is_imported_when_the_first_sentences_are_scored(checkpoint: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from mnmt_eval.metrics import BleurtConfig, MetricConfig, metric
config = MetricConfig(bleurt=BleurtConfig(checkpoint=Path({str(checkpoint)!r})))
metric("bleurt", target="de", config=config).signature
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
