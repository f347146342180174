"""Experts that choose their tokens, against every expert computed for every token."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.decoding import IncrementalModel
from mnmt_model.transformer.experts.expert_choice import ExpertChoiceGate, best_tokens, tokens_above
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.experts.routes import Routes, RoutingContext, TokenRoutes
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

CONFIG = ModelConfig(
    decoder_layers=2, d_model=16, num_heads=2, d_ff=24, num_experts=4, capacity_factor=1.0, expert_choice=True
)
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
TGT = torch.tensor([[7, 6, 1, 0], [9, 9, 8, 1], [4, 1, 0, 0]])


def make_mixture(config: ModelConfig = CONFIG, *, seed: int = 0) -> MixtureOfExperts:
    mixture = MixtureOfExperts(config, 0.0, SINGLE_RANK, experts_choose=True)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in mixture.parameters():
            parameter.normal_(generator=generator, std=0.5)
    return mixture


def gate_of(mixture: MixtureOfExperts) -> ExpertChoiceGate:
    assert isinstance(mixture.gate, ExpertChoiceGate)
    return mixture.gate


def gates_of(mixture: MixtureOfExperts, x: Tensor) -> Tensor:
    return (x @ mixture.gate.weight.T).softmax(-1)


def routes_of(num_tokens: int) -> tuple[Routes, TokenRoutes]:
    batch = Sentences.from_padded(torch.arange(2, 2 + num_tokens)[None])
    routes = Routes(RoutingContext.default(1, torch.device("cpu")), batch, batch)
    return routes, routes.sources()


def states(num_tokens: int, seed: int = 0) -> Tensor:
    return torch.randn(num_tokens, 16, generator=torch.Generator().manual_seed(seed))


def weighted_sum(mixture: MixtureOfExperts, x: Tensor, taken: Tensor) -> Tensor:
    """Σ_e g_e FFN_e(x) over the experts that have `taken (num_tokens, num_experts)` a token."""
    hidden = torch.einsum("nd,edf->enf", x, mixture.experts.wi).relu()
    outputs = torch.einsum("enf,efd->end", hidden, mixture.experts.wo)
    return torch.einsum("ne,end->nd", gates_of(mixture, x) * taken, outputs)


def best_by_counting(gates: Tensor, capacity: int) -> Tensor:
    """Whether fewer than `capacity` tokens come before a token in the order of an expert, by definition."""
    earlier = torch.ones(len(gates), len(gates)).tril(-1).bool()[..., None]
    before = (gates[None] > gates[:, None]) | ((gates[None] == gates[:, None]) & earlier)
    return before.sum(dim=1) < capacity


@settings(max_examples=30)
@given(num_tokens=st.integers(1, 20), num_experts=st.integers(2, 9), data=st.data())
def test_each_expert_takes_its_best_tokens(num_tokens: int, num_experts: int, data: st.DataObject) -> None:
    capacity = data.draw(st.integers(1, 24))
    levels = st.lists(st.integers(0, 5), min_size=num_experts, max_size=num_experts)
    # Few values, so that many are equal.
    gates = torch.tensor(data.draw(st.lists(levels, min_size=num_tokens, max_size=num_tokens))) / 5
    choice = best_tokens(gates, capacity)
    taken = torch.zeros_like(gates)
    experts = torch.arange(num_experts).repeat_interleave(min(capacity, num_tokens))
    taken[choice.tokens, experts] = 1
    assert torch.equal(taken.bool(), best_by_counting(gates, capacity))
    assert torch.equal(choice.weights, gates[choice.tokens, experts])
    assert choice.ends.tolist() == [min(capacity, num_tokens) * (e + 1) for e in range(num_experts)]


@settings(max_examples=30)
@given(num_tokens=st.integers(0, 12), num_experts=st.integers(2, 5), seed=st.integers(0, 99))
def test_each_expert_takes_all_tokens_above_its_threshold(
    num_tokens: int, num_experts: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    gates = torch.randint(0, 4, (num_tokens, num_experts), generator=generator) / 4
    thresholds = torch.randint(0, 5, (num_experts,), generator=generator) / 4
    choice = tokens_above(gates, thresholds)
    rows = [(int(t), e) for e in range(num_experts) for t in (gates[:, e] >= thresholds[e]).nonzero()]
    assert choice.tokens.tolist() == [token for token, _ in rows]
    assert choice.weights.tolist() == [float(gates[row]) for row in rows]
    assert choice.ends.tolist() == [sum(e <= last for _, e in rows) for last in range(num_experts)]


@pytest.mark.parametrize("num_tokens", [1, 3, 14, 40])
def test_training_is_the_sum_over_the_experts_that_chose(num_tokens: int) -> None:
    mixture = make_mixture()
    x = states(num_tokens).requires_grad_()
    y = mixture(x, routes_of(num_tokens)[1])
    capacity = CONFIG.expert_capacity(num_tokens, CONFIG.capacity_factor)
    expected = weighted_sum(mixture, x, best_by_counting(gates_of(mixture, x), capacity))
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
    inputs = [x, *mixture.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad(y.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_evaluation_is_the_sum_over_the_thresholds_that_are_passed() -> None:
    mixture = make_mixture().eval()
    gate_of(mixture).thresholds.copy_(torch.tensor([0.1, 0.3, 0.9, 0.0]))
    x = states(40)
    expected = weighted_sum(mixture, x, gates_of(mixture, x) >= gate_of(mixture).thresholds)
    torch.testing.assert_close(mixture(x), expected, rtol=1e-4, atol=1e-5)


def test_a_token_that_no_expert_takes_is_left_to_the_residual() -> None:
    mixture = make_mixture().eval()
    gate_of(mixture).thresholds.fill_(1.1)
    assert (mixture(states(5)) == 0).all()


def test_all_experts_have_the_same_load_and_the_least_gates_are_reported() -> None:
    mixture = make_mixture()
    routes, tokens = routes_of(40)
    x = states(40)
    mixture(x, tokens)
    balance = routes.balance(1)
    assert balance.load.tolist() == [[[12, 12, 12, 12]]]
    assert int(balance.drops.sum()) == 0
    least = gates_of(mixture, x).sort(dim=0, descending=True).values[11]
    torch.testing.assert_close(balance.least_gates, least[None].detach())


def test_thresholds_are_the_mean_of_the_first_steps_and_then_follow() -> None:
    gate = ExpertChoiceGate(CONFIG)
    least = torch.rand(120, 4, generator=torch.Generator().manual_seed(0))
    for step in range(1, 101):
        gate.follow(least[step - 1], step=step)
    torch.testing.assert_close(gate.thresholds, least[:100].mean(dim=0))
    before = gate.thresholds.clone()
    gate.follow(least[100], step=101)
    torch.testing.assert_close(gate.thresholds, 0.99 * before + 0.01 * least[100])


def make_model(thresholds: float) -> TranslationModel:
    model = build_model(CONFIG, 20)
    initialise(model, seed=1)
    gate_of(model.mixtures[0]).thresholds.fill_(thresholds)
    return model.eval()


@pytest.mark.parametrize("thresholds", [0.0, 0.2, 0.4])
def test_batch_mates_change_no_loss_in_evaluation(thresholds: float) -> None:
    model = make_model(thresholds)
    together = model(Sentences.from_padded(SRC), Sentences.from_padded(TGT)).pair_nats
    for row in range(3):
        src, tgt = (Sentences.from_padded(ids[row : row + 1]) for ids in (SRC, TGT))
        torch.testing.assert_close(model(src, tgt).pair_nats[0], together[row], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("thresholds", [0.0, 0.25])
def test_one_token_at_a_time_equals_all_at_once(thresholds: float) -> None:
    model = make_model(thresholds)
    expected = model.logits(SRC, TGT).log_softmax(-1)
    searched = IncrementalModel(model)
    state = searched.encode(SRC, SRC == 0)
    tokens = torch.zeros(len(SRC), dtype=torch.int64)
    for position in range(TGT.size(1)):
        log_probs, state = searched.step(state, tokens)
        real = TGT[:, position] != 0
        torch.testing.assert_close(log_probs[real], expected[real, position], rtol=1e-4, atol=1e-4)
        tokens = TGT[:, position]
