"""Hypotheses that branch in one buffer, against caches that are reordered, and all tokens at once."""

from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_models import VOCAB_SIZE, random_model
from torch import Tensor

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.decoding.flat_state import FlatState
from mnmt_model.transformer.decoding.incremental_model import IncrementalModel
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig

T5 = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, head_dim=6, d_ff=24)
PARTS = {"t5": T5, "vanilla": replace(T5, **VASWANI), "mixture of experts": replace(T5, num_experts=4)}
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
BEAM = 3
LONGEST = 24

all_models = pytest.mark.parametrize(
    ("architecture", "parts"), [(name, parts) for name in ARCHITECTURES for parts in PARTS]
)


def make_model(architecture: Architecture, parts: str) -> IncrementalModel:
    return IncrementalModel(random_model(replace(PARTS[parts], architecture=architecture)))


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@dataclass(frozen=True)
class Branching:
    """A random tree of hypotheses of every sentence."""

    tokens: Tensor
    """`(steps, batch, beam)`, `PAD` at first."""
    parents: Tensor
    """`(steps, batch, beam)`, which hypothesis of the step before each continues."""

    @classmethod
    def random(cls, seed: int, *, steps: int) -> "Branching":
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(2, VOCAB_SIZE, (steps, len(SRC), BEAM), generator=generator)
        tokens[0] = 0
        return cls(tokens, torch.randint(0, BEAM, (steps, len(SRC), BEAM), generator=generator))

    def ancestors(self) -> list[Tensor]:
        """The masks `(batch, beam, beam * LONGEST)` of each step."""
        mask = torch.zeros(self.tokens.size(1), BEAM, BEAM * LONGEST, dtype=torch.bool)
        masks = []
        for step, parents in enumerate(self.parents):
            mask = mask.take_along_dim(parents[..., None], dim=1)
            mask[:, torch.arange(BEAM), step * BEAM + torch.arange(BEAM)] = True
            masks.append(mask)
        return masks

    def histories(self) -> Tensor:
        """`(batch, beam, steps - 1)` tokens of each hypothesis of the last step, the first `PAD` left out."""
        histories = self.tokens[0, ..., None]
        for tokens, parents in zip(self.tokens[1:], self.parents[1:], strict=True):
            histories = torch.cat([histories.take_along_dim(parents[..., None], 1), tokens[..., None]], dim=2)
        return histories[..., 1:]


def start(incremental: IncrementalModel, src: Tensor) -> FlatState:
    return incremental.start_flat(src, src == 0, beam=BEAM, max_steps=LONGEST)


def flat(incremental: IncrementalModel, src: Tensor, tree: Branching) -> Tensor:
    """`(steps, batch, beam, vocab)` log-probabilities."""
    state = start(incremental, src)
    results = []
    for step, (tokens, ancestors) in enumerate(zip(tree.tokens, tree.ancestors(), strict=True)):
        log_probs, state = incremental.step_flat(state, tokens, ancestors, torch.full_like(tokens, step))
        results.append(log_probs)
    return torch.stack(results)


def reordered(incremental: IncrementalModel, src: Tensor, tree: Branching) -> Tensor:
    """The same by `step`, which moves caches."""
    firsts = torch.arange(len(src))[:, None] * BEAM
    state = incremental.encode(src, src == 0).select(torch.arange(len(src)).repeat_interleave(BEAM))
    results = []
    for tokens, parents in zip(tree.tokens, tree.parents, strict=True):
        log_probs, state = incremental.step(state.select((firsts + parents).flatten()), tokens.flatten())
        results.append(log_probs.view(*tokens.shape, -1))
    return torch.stack(results)


@all_models
@given(seed=st.integers(0, 999), steps=st.integers(1, 10))
@settings(max_examples=3)
def test_nothing_changes_when_nothing_is_moved(
    architecture: Architecture, parts: str, seed: int, steps: int
) -> None:
    tree, incremental = Branching.random(seed, steps=steps), make_model(architecture, parts)
    close(flat(incremental, SRC, tree), reordered(incremental, SRC, tree))


@all_models
def test_a_branch_is_scored_as_the_whole_hypothesis(architecture: Architecture, parts: str) -> None:
    # Beyond the room that a buffer first has, and farther than T5's exact buckets.
    tree, incremental = Branching.random(1, steps=LONGEST), make_model(architecture, parts)
    log_probs = flat(incremental, SRC, tree)[-1].flatten(0, 1)
    histories = tree.histories().flatten(0, 1)
    following = torch.cat([histories, torch.ones_like(histories[:, :1])], dim=1)
    logits = incremental.translation_model.logits(SRC.repeat_interleave(BEAM, 0), following)
    close(log_probs, logits[:, -1].log_softmax(-1))


@all_models
@given(leaving=st.lists(st.sets(st.integers(0, len(SRC) - 1), max_size=2), min_size=12, max_size=12))
@example(leaving=[set() for _ in range(11)] + [{0}])
@settings(max_examples=3)
def test_those_that_stay_do_not_see_others_leave(
    architecture: Architecture, parts: str, leaving: list[set[int]]
) -> None:
    tree, incremental = Branching.random(3, steps=12), make_model(architecture, parts)
    expected, remaining = flat(incremental, SRC, tree), list(range(len(SRC)))
    state = start(incremental, SRC)
    for step, (tokens, ancestors) in enumerate(zip(tree.tokens, tree.ancestors(), strict=True)):
        staying = [row for row, sentence in enumerate(remaining) if sentence not in leaving[step]]
        remaining = [remaining[row] for row in staying]
        if not remaining:
            break
        state = state.keep(torch.tensor(staying, dtype=torch.int64))
        places = torch.full((len(remaining), BEAM), step)
        log_probs, state = incremental.step_flat(state, tokens[remaining], ancestors[remaining], places)
        close(log_probs, expected[step, remaining])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_memory_follows_what_hypotheses_consist_of(architecture: Architecture) -> None:
    """Not the steps allowed, nor a beam's: all continue the first, so that the others' slots are dead."""
    incremental, steps = make_model(architecture, "t5"), 100
    state = incremental.start_flat(SRC, SRC == 0, beam=BEAM, max_steps=10 * steps)
    ancestors = torch.zeros(len(SRC), BEAM, BEAM * 10 * steps, dtype=torch.bool)
    for step in range(steps):
        tokens = torch.full((len(SRC), BEAM), 3)
        mask = ancestors.clone()
        mask[:, torch.arange(BEAM), step * BEAM + torch.arange(BEAM)] = True
        ancestors = mask[:, :1].expand_as(mask)
        _, state = incremental.step_flat(state, tokens, mask, torch.full_like(tokens, step))
    assert state.layers[0].target.buffer.keys.size(2) < 2 * (SRC.size(1) + steps) < BEAM * steps


def test_log_probabilities_are_of_float32_in_any_precision() -> None:
    model = build_model(T5, VOCAB_SIZE, dtype=torch.bfloat16)
    initialise(model, seed=1)
    tree = Branching.random(6, steps=3)
    log_probs = flat(IncrementalModel(model), SRC, tree)
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs, reordered(IncrementalModel(model), SRC, tree), rtol=0.05, atol=0.05)
