"""CTranslate2 against our own search: the same hypotheses and log-probabilities of the same model."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mnmt_data.store import train_vocabulary
from mnmt_eval.errors import EvalError
from mnmt_eval.search import EOS, PAD, LengthPenalty, MaxLength, SamplingConfig, SearchConfig
from mnmt_eval.translate import CTranslate2Engine, EngineConfig, TorchEngine
from mnmt_eval.translate.ctranslate2_engine import check_compute
from mnmt_model import ModelConfig, build_model
from mnmt_model.export import convert_to_ctranslate2, export_hugging_face
from mnmt_model.transformer import IncrementalModel, initialise

SHORT = MaxLength(ratio=1.0, extra=4)
SOURCES = np.array([[5, 6, 7, 9, EOS], [8, EOS, PAD, PAD, PAD], [3, 4, EOS, PAD, PAD], [9, 9, 9, 9, EOS]])


def power(alpha: float) -> LengthPenalty:
    return LengthPenalty(kind="power", alpha=alpha)


CONFIGS = {
    "greedy": SearchConfig(max_length=SHORT, length_penalty=power(0.6)),
    "filled": SearchConfig(
        beam=4, n_best=4, early_stopping="filled", max_length=SHORT, length_penalty=power(1.0)
    ),
    "filled, no penalty": SearchConfig(
        beam=3, n_best=2, early_stopping="filled", max_length=SHORT, length_penalty=power(0.0)
    ),
    "greedy, exact, gnmt": SearchConfig(
        max_length=SHORT, length_penalty=LengthPenalty(kind="gnmt"), early_stopping="exact"
    ),
    "cut off": SearchConfig(
        beam=4,
        n_best=2,
        early_stopping="filled",
        max_length=MaxLength(ratio=0.0, extra=2),
        length_penalty=power(1.0),
    ),
}


@pytest.fixture(scope="module")
def torch_model() -> IncrementalModel:
    """A model whose probabilities are so unequal that rounding decides nothing; padding is unlikely."""
    config = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, num_heads=2, head_dim=8, d_ff=24)
    model = build_model(config, 20)
    initialise(model, seed=4)
    with torch.no_grad():
        model.softmax.weight *= 4
        model.softmax.weight[PAD] = 0.0
    return IncrementalModel(model)


@pytest.fixture(scope="module")
def exported(torch_model: IncrementalModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = torch_model.translation_model
    return export(model.config, model.state_dict(), tmp_path_factory.mktemp("exported"))


def export(config: ModelConfig, weights: Mapping[str, Tensor], folder: Path) -> Path:
    """Write a model for CTranslate2, and return its folder."""
    vocabulary = folder / "vocab.model"
    words = [f"w{number}" for number in range(16)]
    train_vocabulary(words, vocabulary, kind="word", size=20, languages=["xx"])
    export_hugging_face(config, weights, vocabulary, folder / "model")
    convert_to_ctranslate2(folder / "model", folder / "model" / "ctranslate2")
    return folder / "model" / "ctranslate2"


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_it_finds_what_our_search_finds(
    torch_model: IncrementalModel, exported: Path, config: SearchConfig
) -> None:
    ours = TorchEngine(model=torch_model, config=config).search(SOURCES)
    theirs = CTranslate2Engine(folder=exported, config=config).search(SOURCES)
    assert [[h.tokens for h in n_best] for n_best in theirs] == [
        [h.tokens for h in n_best] for n_best in ours
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert [h.log_prob for h in other] == pytest.approx([h.log_prob for h in one], abs=1e-4)
        assert [h.score for h in other] == pytest.approx([h.score for h in one], abs=1e-4)
        assert [h.is_complete for h in other] == [h.is_complete for h in one]


def test_a_compute_type_changes_the_scores(exported: Path) -> None:
    config = CONFIGS["filled"]
    float32, int8 = (
        CTranslate2Engine(folder=exported, config=config, compute=compute).search(SOURCES)
        for compute in ("float32", "int8")
    )
    assert float32[0][0].log_prob != int8[0][0].log_prob
    assert float32[0][0].log_prob == pytest.approx(int8[0][0].log_prob, rel=0.1)


def test_a_compute_type_or_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(EvalError, match=r"`--compute` must be one of .*float32.* on cpu, but is float16"):
        check_compute("float16", "cpu")
    with pytest.raises(EvalError, match=r"CTranslate2 cannot use cuda:99 \(.*\); take `--device cpu`"):
        check_compute("float32", "cuda:99")


def test_options_that_an_engine_lacks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EngineConfig(name="ctranslate2")
    engine.check(CONFIGS["filled"])
    EngineConfig().check(SearchConfig(sampling=SamplingConfig()))
    for search, reason in {
        SearchConfig(sampling=SamplingConfig()): "cannot draw a sample again",
        SearchConfig(beam=2, length_penalty=LengthPenalty(kind="gnmt")): "has no length penalty but `power`",
        SearchConfig(beam=2, early_stopping="exact"): "stops a sentence by no rule but `filled`",
    }.items():
        with pytest.raises(EvalError, match=f"`--engine ctranslate2` {reason}; take `--engine torch`"):
            engine.check(search)
    with pytest.raises(EvalError, match="`--compute int8` needs `--engine ctranslate2`"):
        EngineConfig(compute="int8")
    monkeypatch.setattr("mnmt_eval.translate.engine_config.find_spec", lambda module: None)
    with pytest.raises(EvalError, match=r"needs ctranslate2, .*mnmt-eval\[runs\]"):
        EngineConfig(name="ctranslate2")
    EngineConfig()


def test_padding_is_never_produced(torch_model: IncrementalModel, tmp_path: Path) -> None:
    model = deepcopy(torch_model.translation_model)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    weights["softmax.weight"][PAD] = weights["softmax.weight"][9] * 1.5
    config = CONFIGS["filled"]
    found = CTranslate2Engine(folder=export(model.config, weights, tmp_path), config=config).search(SOURCES)
    assert PAD not in {token for n_best in found for h in n_best for token in h.tokens}
    # CTranslate2 forbids padding before the softmax, so log-probabilities are computed once more.
    model.load_state_dict(weights)
    for src, n_best in zip(SOURCES, found, strict=True):
        assert [h.score for h in n_best] == sorted((h.score for h in n_best), reverse=True)
        for h in n_best:
            source, target = torch.from_numpy(src[src != PAD])[None], torch.tensor([h.tokens])
            log_probs = model.logits(source, target).log_softmax(2)[0]
            expected = log_probs[torch.arange(len(h.tokens)), target[0]].sum()
            assert h.log_prob == pytest.approx(expected.item(), abs=1e-4)
