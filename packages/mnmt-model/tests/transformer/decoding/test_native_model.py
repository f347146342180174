"""Steps in C++ against torch's own."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from random_models import VOCAB_SIZE, random_model
from torch import Tensor

from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.optim.native_adafactor import optimizer_shapes
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.decoding import IncrementalModel, NativeModel, step_model
from mnmt_model.transformer.model_config import ARCHITECTURES, NLLB, VASWANI, Architecture, ModelConfig
from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.products import Products

pytestmark = pytest.mark.skipif(not has_library(), reason="there is no C++ compiler")

# Widths on both sides of whole vectors and panels.
WIDE = ModelConfig(decoder_layers=2, d_model=70, num_heads=3, head_dim=22, d_ff=130)
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
BEAM = 5
PARTS = {
    "t5": WIDE,
    "vanilla": replace(WIDE, **VASWANI),
    "nllb, large epsilon": replace(WIDE, **(NLLB | {"norm_epsilon": 0.3})),
}


@pytest.fixture(params=[1, 2, 3], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def branching(model: IncrementalModel | NativeModel, steps: int) -> Iterator[Tensor]:
    """Log-probabilities of hypotheses that branch and die at every step, and of sentences that leave."""
    generator = torch.Generator().manual_seed(4)
    state = model.encode(SRC, SRC == 0)
    state, sentences = state.select(torch.arange(len(SRC)).repeat_interleave(BEAM)), len(SRC)
    tokens = torch.zeros(sentences * BEAM, dtype=torch.int64)
    for step in range(steps):
        log_probs, state = model.step(state, tokens)
        yield log_probs
        if step == steps // 2:
            sentences -= 1
        parents = torch.randint(BEAM, (sentences, BEAM), generator=generator)
        state = state.select((parents + BEAM * torch.arange(sentences)[:, None]).flatten())
        tokens = torch.randint(2, VOCAB_SIZE, (sentences * BEAM,), generator=generator)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_hypotheses_that_branch_score_as_with_reordered_caches(
    architecture: Architecture, parts: ModelConfig
) -> None:
    model = random_model(replace(parts, architecture=architecture))
    native, plain = (branching(each, 70) for each in (NativeModel(model), IncrementalModel(model)))
    for ours, expected in zip(native, plain, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_in_double_precision_they_are_those_of_all_tokens_at_once(parts: ModelConfig) -> None:
    model = build_model(parts, VOCAB_SIZE, dtype=torch.float64).double()
    initialise(model, seed=1)
    tgt = torch.randint(2, VOCAB_SIZE, (len(SRC), 9), generator=torch.Generator().manual_seed(0))
    expected = model.eval().logits(SRC, tgt).log_softmax(-1)
    native = NativeModel(model)
    state = native.encode(SRC, SRC == 0)
    for position, tokens in enumerate([torch.zeros_like(tgt[:, 0]), *tgt[:, :-1].unbind(1)]):
        log_probs, state = native.step(state, tokens)
        torch.testing.assert_close(log_probs, expected[:, position].float(), rtol=1e-6, atol=1e-6)


def test_a_hypothesis_has_the_same_bits_beside_any_others() -> None:
    native = NativeModel(random_model(WIDE))
    state = native.encode(SRC, SRC == 0)
    together, _ = native.step(state.select(torch.tensor([1, 2, 2, 0, 1, 2, 0, 0])), torch.arange(2, 10))
    alone, _ = native.step(state.select(torch.tensor([0])), torch.tensor([5]))
    assert torch.equal(together[3], alone[0])


def test_only_slots_of_live_hypotheses_are_kept() -> None:
    native = NativeModel(random_model(WIDE))
    state = native.encode(SRC, SRC == 0)
    for _ in range(200):
        _, state = native.step(state, torch.full((len(SRC),), 7))
        state = state.select(torch.tensor([0, 0, 0]))
    assert state.table.slots.size(1) < 3 * 200


def test_weights_that_have_changed_are_read_again() -> None:
    model = build_model(WIDE, VOCAB_SIZE)
    initialise(model, seed=1)
    native = NativeModel(model)

    def first_step() -> Tensor:
        return native.step(native.encode(SRC, SRC == 0), torch.zeros(len(SRC), dtype=torch.int64))[0]

    before = first_step()
    initialise(model, seed=2)
    after = first_step()
    assert not torch.allclose(before, after)
    expected, _ = (plain := IncrementalModel(model)).step(
        plain.encode(SRC, SRC == 0), torch.zeros(len(SRC), dtype=torch.int64)
    )
    torch.testing.assert_close(after, expected, rtol=1e-4, atol=1e-4)


def test_a_step_of_the_native_optimiser_is_noticed() -> None:
    model = build_model(WIDE, VOCAB_SIZE)
    initialise(model, seed=1)
    native = NativeModel(model)
    before = native.encode(SRC, SRC == 0).weights
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    ways = dict.fromkeys(optimizer_shapes(list(model.parameters()), "adafactor"), "native")
    Adafactor(model.parameters(), lr=0.1, products=Products(ways=ways)).step()
    assert native.encode(SRC, SRC == 0).weights is not before


def test_tokens_must_be_one_a_row_and_padding_last() -> None:
    native = NativeModel(random_model(WIDE))
    state = native.encode(SRC, SRC == 0)
    with pytest.raises(ValueError, match=r"one a row \(3\), but are 4"):
        native.step(state, torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="a token follows padding"):
        native.encode(SRC.flip(1), SRC.flip(1) == 0)


def test_a_copy_reads_its_own_weights_and_a_state_is_not_copied() -> None:
    native = NativeModel(build_model(WIDE, VOCAB_SIZE))
    initialise(native.translation_model, seed=1)
    state = native.encode(SRC, SRC == 0)
    with pytest.raises(TypeError, match="holds addresses"):
        deepcopy(state)
    copy = deepcopy(native)
    initialise(native.translation_model, seed=2)
    tokens = torch.zeros(len(SRC), dtype=torch.int64)
    plain = IncrementalModel(copy.translation_model)
    expected, _ = plain.step(plain.encode(SRC, SRC == 0), tokens)
    torch.testing.assert_close(
        copy.step(copy.encode(SRC, SRC == 0), tokens)[0], expected, rtol=1e-4, atol=1e-4
    )


def test_a_model_that_was_cast_is_refused() -> None:
    model = build_model(WIDE, VOCAB_SIZE)
    initialise(model, seed=1)
    native = NativeModel(model)
    model.bfloat16()
    with pytest.raises((ValueError, RuntimeError)):
        native.encode(SRC, SRC == 0)


def test_models_made_in_inference_mode_can_be_searched() -> None:
    with torch.inference_mode():
        model = build_model(WIDE, VOCAB_SIZE)
        initialise(model, seed=1)
    native = NativeModel(model)
    log_probs, _ = native.step(native.encode(SRC, SRC == 0), torch.zeros(len(SRC), dtype=torch.int64))
    assert log_probs.isfinite().all()


def test_what_is_not_a_number_stays_so() -> None:
    model = build_model(WIDE, VOCAB_SIZE)
    initialise(model, seed=1)
    with torch.no_grad():
        model.softmax_weight[7, 3] = torch.nan
    native = NativeModel(model)
    log_probs, _ = native.step(native.encode(SRC, SRC == 0), torch.zeros(len(SRC), dtype=torch.int64))
    assert log_probs.isnan().all()


@pytest.mark.parametrize(
    ("model", "native"),
    [
        (WIDE, True),
        (replace(WIDE, architecture="causal-lm"), True),
        (replace(WIDE, num_experts=4), False),
    ],
    ids=["encdec", "causal-lm", "experts"],
)
def test_models_are_searched_in_cpp_where_that_is_possible(model: ModelConfig, native: bool) -> None:
    assert isinstance(step_model(random_model(model)), NativeModel if native else IncrementalModel)


def test_models_in_bfloat16_are_searched_with_torch() -> None:
    model = build_model(WIDE, VOCAB_SIZE, dtype=torch.bfloat16)
    assert isinstance(step_model(model), IncrementalModel)
