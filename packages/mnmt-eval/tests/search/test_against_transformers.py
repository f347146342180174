"""What is found against Hugging Face's `generate`, on an exported model.

Where definitions coincide: theirs divides by len^alpha, as `power` does, and takes the hypotheses that end
from among the `num_beams` best candidates. Its `early_stopping="never"` is our `exact`, its
`True` our `filled`; its default, `False`, bounds what is attainable by the present length, which is only
right without a penalty. Padding, which we never produce, must be suppressed there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mnmt_data.store import Vocabulary, train_vocabulary
from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, beam_search, flat_beam_search, search
from mnmt_eval.search.protocol import EOS, PAD
from mnmt_model.export import export_hugging_face
from mnmt_model.transformer import NLLB, IncrementalModel, ModelConfig, build_model, initialise

pytest.importorskip("google.protobuf", reason="the extra `export` of mnmt-model is not installed")
transformers = pytest.importorskip("transformers", reason="the extra `export` of mnmt-model is not installed")

T5 = ModelConfig(decoder_layers=2, d_model=32, num_heads=4, head_dim=6, d_ff=48)
CONFIGS = {
    "t5": T5,
    "mixture of experts": ModelConfig(decoder_layers=2, d_model=32, d_ff=48, num_experts=4, **NLLB),
}
SRC = torch.tensor([[3, 7, 8, 9, 4, 1], [5, 1, 0, 0, 0, 0], [6, 6, 6, 1, 0, 0], [9, 8, 7, 6, 1, 0]])
LONGEST = 14


@pytest.fixture(scope="module", params=CONFIGS)
def models(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[IncrementalModel, Any]:
    """A random model, and what `transformers` loads of its export."""
    config, folder = CONFIGS[request.param], tmp_path_factory.mktemp("export")
    if config.num_experts:
        pytest.importorskip("mnmt_moe_ext", reason="the package mnmt-moe-ext is not installed")
    lines = [f"w{number} v{number % 7} and u{number % 13}" for number in range(60)]
    train_vocabulary(lines, folder / "vocab.model", kind="word", size=60, languages=["de"])
    model = build_model(config, Vocabulary.load(folder / "vocab.model").size)
    initialise(model, seed=5)
    with torch.no_grad():
        model.softmax_weight[EOS] *= 3  # so that targets end at different lengths
    export_hugging_face(config, model.state_dict(), folder / "vocab.model", folder / "out")
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder / "out")
    return IncrementalModel(model), theirs.eval()


def configure(beam: int, alpha: float) -> SearchConfig:
    return SearchConfig(
        beam=beam,
        n_best=beam,
        length_penalty=LengthPenalty(kind="power", alpha=alpha),
        max_length=MaxLength(ratio=0, extra=LONGEST),
        early_stopping="exact",
    )


def generate(theirs: Any, config: SearchConfig, **options: Any) -> Any:
    """Their search with our settings."""
    return theirs.generate(
        input_ids=SRC,
        attention_mask=(SRC != PAD).long(),
        num_beams=config.beam,
        num_return_sequences=config.n_best,
        length_penalty=config.length_penalty.alpha,
        max_new_tokens=LONGEST,
        suppress_tokens=[PAD],
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
        **options,
    )


def tokens_of(sequences: Tensor) -> list[tuple[int, ...]]:
    """Generated tokens of each sequence, without its start, and up to its end."""
    rows = [row[1:] for row in sequences.tolist()]
    return [tuple(row[: row.index(EOS) + 1] if EOS in row else row) for row in rows]


def same_hypotheses(ours: IncrementalModel, theirs: Any, config: SearchConfig, **options: Any) -> None:
    expected = generate(theirs, config, **options)
    searches: list[tuple[Any, Any]] = [(flat_beam_search, ours), (beam_search, ours)]
    for algorithm, model in searches:
        result = algorithm(model, SRC, config)
        assert [h.tokens for n_best in result for h in n_best] == tokens_of(expected.sequences)
        scores = [h.score for n_best in result for h in n_best]
        assert scores == pytest.approx(expected.sequences_scores.tolist(), rel=1e-4)


@pytest.mark.parametrize("alpha", [0.6, 2.0])
@pytest.mark.parametrize("beam", [4, 8])
def test_exact_stopping_is_their_never(models: tuple[Any, Any], beam: int, alpha: float) -> None:
    same_hypotheses(*models, configure(beam, alpha), early_stopping="never")


@pytest.mark.parametrize("alpha", [0.6, 2.0])
@pytest.mark.parametrize("beam", [4, 8])
def test_stopping_when_filled_is_their_true(models: tuple[Any, Any], beam: int, alpha: float) -> None:
    same_hypotheses(*models, replace(configure(beam, alpha), early_stopping="filled"), early_stopping=True)


@pytest.mark.parametrize("beam", [4, 8])
def test_exact_stopping_is_their_default_without_a_penalty(models: tuple[Any, Any], beam: int) -> None:
    same_hypotheses(*models, configure(beam, 0.0), early_stopping=False)


def test_a_beam_of_one_is_their_greedy_search(models: tuple[Any, Any]) -> None:
    ours, theirs = models
    config = configure(1, 0.0)
    expected = generate(theirs, config)
    log_probs = torch.stack(expected.logits, dim=1).log_softmax(-1)
    for (best,), tokens, row in zip(
        search(ours, SRC, config), tokens_of(expected.sequences), log_probs, strict=True
    ):
        assert best.tokens == tokens
        assert best.token_log_probs == pytest.approx(
            [float(row[i, token]) for i, token in enumerate(tokens)], rel=1e-3, abs=1e-5
        )
