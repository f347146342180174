"""Our search on models of transformers against their own `generate`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hugging_face_models import MODELS, VOCAB, random_model
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search import (
    EOS,
    PAD,
    HuggingFaceModel,
    Hypothesis,
    LengthPenalty,
    MaxLength,
    Numbering,
    SamplingConfig,
    SearchConfig,
    search,
)

pytest.importorskip("transformers", reason="the extra `hugging-face` is not installed")

LONGEST = 14
LENGTHS = (7, 3, 9, 5, 4)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return random_model(request.param)


def random_sources(model: Any) -> tuple[Tensor, Tensor]:
    """Sources in the model's numbering, padded, and their mask."""
    generator = torch.Generator().manual_seed(1)
    pad, eos = model.config.pad_token_id, model.config.eos_token_id
    src = torch.full((len(LENGTHS), max(LENGTHS)), pad)
    for row, length in enumerate(LENGTHS):
        src[row, : length - 1] = torch.randint(4, VOCAB - 1, (length - 1,), generator=generator)
        src[row, length - 1] = eos
    return src, (src != pad).long()


def configure(beam: int, alpha: float = 1.0, **options: Any) -> SearchConfig:
    return SearchConfig(
        beam=beam,
        n_best=beam,
        length_penalty=LengthPenalty(alpha=alpha),
        max_length=MaxLength(ratio=0, extra=LONGEST),
        **options,
    )


def our_search(adapter: HuggingFaceModel, src: Tensor, config: SearchConfig) -> list[Hypothesis]:
    """Our hypotheses, in the model's numbering."""
    numbers = adapter.numbering
    results = search(adapter, torch.from_numpy(numbers.to_search)[src], config)
    return [
        replace(hypothesis, tokens=tuple(numbers.model_ids(hypothesis.tokens)))
        for n_best in results
        for hypothesis in n_best
    ]


def their_search(
    model: Any, config: SearchConfig, **options: Any
) -> tuple[list[tuple[int, ...]], list[float]]:
    """Their sequences without the start, up to the end, and their scores."""
    src, mask = random_sources(model)
    never = [model.config.pad_token_id, *(options.pop("suppress_tokens", []))]
    stopping = {"filled": True, "exact": "never"}[config.early_stopping]
    output = model.generate(
        input_ids=src,
        attention_mask=mask,
        num_beams=config.beam,
        num_return_sequences=config.n_best,
        length_penalty=config.length_penalty.alpha,
        early_stopping=stopping if config.beam > 1 else False,
        max_new_tokens=LONGEST,
        suppress_tokens=never,
        forced_eos_token_id=None,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    eos = model.config.eos_token_id
    rows = [row[1:] for row in output.sequences.tolist()]
    tokens = [tuple(row[: row.index(eos) + 1] if eos in row else row) for row in rows]
    return tokens, output.sequences_scores.tolist() if config.beam > 1 else []


def assert_same(model: Any, config: SearchConfig, **options: Any) -> list[Hypothesis]:
    """Compare both searches with the options of `generation_config`, and return what ours finds."""
    before = model.generation_config.to_dict()
    model.generation_config.update(**options)
    try:
        ours = our_search(HuggingFaceModel(model), random_sources(model)[0], config)
        tokens, scores = their_search(model, config)
    finally:
        model.generation_config.update(**before)
    assert [hypothesis.tokens for hypothesis in ours] == tokens
    if scores:
        assert [hypothesis.score for hypothesis in ours] == pytest.approx(scores, rel=1e-5, abs=1e-5)
    return ours


@pytest.mark.parametrize("early_stopping", ["filled", "exact"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beam", [4, 5])
def test_beam_search_is_theirs(model: Any, beam: int, alpha: float, early_stopping: Any) -> None:
    assert_same(model, configure(beam, alpha, early_stopping=early_stopping))


def test_a_beam_of_one_is_their_greedy_search(model: Any) -> None:
    assert_same(model, configure(1))


def test_the_targets_that_are_compared_differ(model: Any) -> None:
    ours = assert_same(model, configure(5))
    assert len({hypothesis.tokens for hypothesis in ours}) >= 20
    assert len({len(hypothesis.tokens) for hypothesis in ours}) > 3


OPTIONS = {
    "a first token": {"forced_bos_token_id": 7},
    "a least length": {"min_length": 6},
    "words that are forbidden": {"bad_words_ids": [[token] for token in range(10, 40)] + [[41, 42]]},
    "no repeated bigrams": {"no_repeat_ngram_size": 2},
    "a penalty of repetition": {"repetition_penalty": 1.5},
    "tokens that do not begin": {"begin_suppress_tokens": list(range(20, 50))},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_of_the_generation_count(model: Any, options: dict[str, Any]) -> None:
    plain = [hypothesis.tokens for hypothesis in assert_same(model, configure(4))]
    assert [hypothesis.tokens for hypothesis in assert_same(model, configure(4), **options)] != plain


def test_every_row_can_have_a_first_token_of_its_own(model: Any) -> None:
    adapter = HuggingFaceModel(model, target_tag="first")
    src, _ = random_sources(model)
    tags = [7, 8, 9, 7, 8]
    tagged = torch.cat([torch.tensor(tags)[:, None], src], dim=1)
    config = configure(4)
    ours = our_search(adapter, tagged, config)
    for token in set(tags):
        tokens, scores = their_search(model, config, forced_bos_token_id=token)
        rows = [i for i in range(4 * len(tags)) if tags[i // 4] == token]
        assert [ours[i].tokens for i in rows] == [tokens[i] for i in rows]
        assert [ours[i].score for i in rows] == pytest.approx([scores[i] for i in rows], rel=1e-5, abs=1e-5)


def test_every_row_can_start_from_a_token_of_its_own(model: Any) -> None:
    adapter = HuggingFaceModel(model, target_tag="start")
    src, _ = random_sources(model)
    tags = [7, 8, 9, 7, 8]
    config = configure(4)
    ours = our_search(adapter, torch.cat([torch.tensor(tags)[:, None], src], dim=1), config)
    for token in set(tags):
        tokens, _ = their_search(model, config, decoder_start_token_id=token)
        rows = [i for i in range(4 * len(tags)) if tags[i // 4] == token]
        assert [ours[i].tokens for i in rows] == [tokens[i] for i in rows]


def test_samples_have_the_log_probabilities_of_the_model(model: Any) -> None:
    adapter = HuggingFaceModel(model)
    src, mask = random_sources(model)
    config = SearchConfig(sampling=SamplingConfig(seed=4), n_best=3, max_length=MaxLength(ratio=0, extra=9))
    for i, hypothesis in enumerate(our_search(adapter, src, config)):
        start = model.generation_config.decoder_start_token_id
        row = torch.tensor([[start, *hypothesis.tokens]])
        logits = model(
            input_ids=src[i // 3][None], attention_mask=mask[i // 3][None], decoder_input_ids=row
        ).logits
        expected = logits[0, :-1].log_softmax(-1).gather(1, row[0, 1:, None]).squeeze(1)
        assert hypothesis.token_log_probs == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-5)


def test_batch_mates_change_nothing(model: Any) -> None:
    adapter, config = HuggingFaceModel(model), configure(4)
    src, _ = random_sources(model)
    together = our_search(adapter, src, config)
    alone = [
        h
        for row, length in enumerate(LENGTHS)
        for h in our_search(adapter, src[row : row + 1, :length], config)
    ]
    assert [h.tokens for h in together] == [h.tokens for h in alone]


@pytest.mark.parametrize(("pad", "eos"), [(0, 1), (1, 0), (1, 2), (9, 0), (2, 1), (0, 5), (8, 9)])
def test_numbers_go_there_and_back(pad: int, eos: int) -> None:
    numbers = Numbering(size=10, pad=pad, eos=eos)
    assert numbers.search_ids([pad, eos]).tolist() == [PAD, EOS]
    assert numbers.model_ids(numbers.search_ids(range(10))) == list(range(10))
    assert len(numbers.moved) <= 4
    assert np.array_equal(np.delete(numbers.to_model, numbers.moved), np.delete(np.arange(10), numbers.moved))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_no_repeat_ngram_size": 2}, "`encoder_no_repeat_ngram_size` is not supported"),
        ({"eos_token_id": [2, 3]}, "`eos_token_id` must be one token"),
        ({"pad_token_id": None}, "`pad_token_id` is missing"),
    ],
)
def test_what_cannot_be_searched_alike_is_refused(options: dict[str, Any], message: str) -> None:
    model = random_model("bart")
    model.generation_config.update(**options)
    with pytest.raises(EvalError, match=message):
        HuggingFaceModel(model)
