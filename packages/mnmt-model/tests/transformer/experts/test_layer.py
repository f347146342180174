"""The mixture-of-experts layer and models of it against every expert computed for every token."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

import mnmt_moe_ext
from mnmt_model import RunError
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.experts import operators as expert_operators
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.experts.routes import Routes, RoutingContext
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 20
CONFIG = ModelConfig(decoder_layers=2, d_model=16, num_heads=2, d_ff=24, num_experts=4)
SRC = torch.tensor([[5, 6, 7, 9, 1], [8, 1, 0, 0, 0], [3, 3, 1, 0, 0]])
TGT = torch.tensor([[7, 6, 1, 0], [9, 9, 8, 1], [4, 1, 0, 0]])


def sentences(lengths: list[int]) -> Sentences:
    rows = [torch.arange(2, 2 + length) for length in lengths]
    return Sentences.from_padded(torch.nn.utils.rnn.pad_sequence(rows, batch_first=True))


def make_mixture(config: ModelConfig = CONFIG, *, seed: int = 0) -> MixtureOfExperts:
    mixture = MixtureOfExperts(config, 0.0, SINGLE_RANK)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in mixture.parameters():
            parameter.normal_(generator=generator, std=0.5)
    return mixture


def make_model(config: ModelConfig) -> TranslationModel:
    model = build_model(config, VOCAB_SIZE)
    initialise(model, seed=1)
    return model


def every_expert(mixture: MixtureOfExperts, x: Tensor) -> Tensor:
    """What each expert makes of each token, `(num_experts, num_tokens, d_model)`."""
    hidden = torch.einsum("nd,edf->enf", x, mixture.experts.wi).relu()
    return torch.einsum("enf,efd->end", hidden, mixture.experts.wo)


def best_two(mixture: MixtureOfExperts, x: Tensor) -> Tensor:
    """Σ G_e FFN_e(x) over the two largest gates, made to sum to 1."""
    gates, experts = (x @ mixture.gate.weight.T).softmax(-1).topk(2)
    outputs = every_expert(mixture, x)[experts.T, torch.arange(len(x))]
    weights = gates / gates.sum(-1, keepdim=True)
    return (weights.T[..., None] * outputs).sum(0)


def routes_for(batch: Sentences, *, uniform: bool = False, step: int = 0) -> Routes:
    context = RoutingContext(
        pair_ids=torch.arange(batch.batch), seed_and_step=torch.tensor([3, step]), uniform=uniform
    )
    return Routes(context, batch, batch, SINGLE_RANK)


@settings(max_examples=15)
@given(num_experts=st.integers(2, 9), num_tokens=st.integers(1, 20), seed=st.integers(0, 99))
def test_evaluation_is_the_best_two_of_all_experts(num_experts: int, num_tokens: int, seed: int) -> None:
    mixture = make_mixture(replace(CONFIG, num_experts=num_experts), seed=seed).eval()
    x = torch.randn(num_tokens, 16, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(mixture(x), best_two(mixture, x), rtol=1e-4, atol=1e-5)


def test_training_with_room_for_all_is_the_same() -> None:
    mixture = make_mixture(replace(CONFIG, second_expert="always", capacity_factor=4.0))
    batch = sentences([5, 9])
    x = torch.randn(14, 16, requires_grad=True)
    routed, expected = mixture(x, routes_for(batch).sources()), best_two(mixture, x)
    torch.testing.assert_close(routed, expected, rtol=1e-4, atol=1e-5)
    inputs = [x, *mixture.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad(routed.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_what_finds_no_slot_is_left_to_the_residual() -> None:
    mixture = make_mixture(replace(CONFIG, second_expert="always", capacity_factor=0.5))
    with torch.no_grad():
        mixture.gate.weight.copy_(torch.tensor([[3.0], [2.0], [1.0], [0.0]]).expand(-1, 16))
    batch = sentences([16, 16])
    routes = routes_for(batch)
    # All choose experts 0 and 1, which have 4 slots each: of 32 tokens the first four are served.
    x = 1 + torch.rand(32, 16)
    y = mixture(x, routes.sources())
    assert (y[4:] == 0).all()
    assert (y[:4] != 0).any(dim=1).all()
    torch.testing.assert_close(y[:4], best_two(mixture, x)[:4], rtol=1e-4, atol=1e-5)
    balance = routes.balance(1)
    assert balance.load.tolist() == [[32, 32, 0, 0]]
    assert balance.claims.tolist() == [32, 32]
    assert balance.drops.tolist() == [24, 32]
    # All first choices at expert 0: E f_0 m_0.
    gates = (x @ mixture.gate.weight.detach().T).softmax(-1)
    assert float(balance.auxiliary.detach()) == pytest.approx(4 * float(gates[:, 0].mean()), rel=1e-5)


def test_an_evaluation_may_have_a_capacity_of_its_own() -> None:
    limited = make_mixture(replace(CONFIG, eval_capacity_factor=0.5)).eval()
    with torch.no_grad():
        limited.gate.weight.copy_(torch.tensor([[3.0], [2.0], [1.0], [0.0]]).expand(-1, 16))
    y = limited(1 + torch.rand(32, 16))
    assert (y[4:] == 0).all()
    assert (y[:4] != 0).any()


@pytest.mark.parametrize("step", [0, 1, 7])
def test_uniform_routing_spreads_tokens_evenly(step: int) -> None:
    mixture = make_mixture(replace(CONFIG, num_experts=5))
    batch = sentences([11, 12])
    routes = routes_for(batch, uniform=True, step=step)
    mixture(torch.randn(23, 16), routes.sources())
    (load,) = routes.balance(1).load
    assert int(load.sum()) == 46
    assert int(load.max() - load.min()) <= 2


def test_random_choices_go_with_the_tokens_wherever_they_are() -> None:
    mixture = make_mixture(replace(CONFIG, capacity_factor=9.0))
    x = torch.randn(3, 4, 16, generator=torch.Generator().manual_seed(5))
    batch = sentences([4, 4, 4])
    together = mixture(x.view(12, 16), routes_for(batch).sources()).view(3, 4, 16)
    for row in (2, 0, 1):
        one = sentences([4])
        context = RoutingContext(pair_ids=torch.tensor([row]), seed_and_step=torch.tensor([3, 0]))
        apart = mixture(x[row], Routes(context, one, one, SINGLE_RANK).sources())
        torch.testing.assert_close(apart, together[row], rtol=1e-4, atol=1e-5)
    later = mixture(x.view(12, 16), routes_for(batch, step=1).sources()).view(3, 4, 16)
    assert not torch.allclose(later, together)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_batch_mates_change_no_loss_in_evaluation(architecture: Architecture) -> None:
    model = make_model(replace(CONFIG, architecture=architecture)).eval()
    together = model(Sentences.from_padded(SRC), Sentences.from_padded(TGT)).pair_nats
    for row in range(3):
        src, tgt = (Sentences.from_padded(ids[row : row + 1]) for ids in (SRC, TGT))
        torch.testing.assert_close(model(src, tgt).pair_nats[0], together[row], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_layer_that_should_has_experts_and_is_counted(architecture: Architecture) -> None:
    model = make_model(replace(CONFIG, architecture=architecture, decoder_layers=4)).train()
    kinds = [type(layer.feed_forward).__name__ for layer in model.target_stack.layers]
    assert kinds == ["GatedFeedForward", "MixtureOfExperts"] * 2
    losses = model(Sentences.from_padded(SRC), Sentences.from_padded(TGT))
    assert losses.balance is not None
    assert losses.balance.load.shape == (len(model.mixtures), 4)
    assert (losses.balance.load.sum(dim=1) > 0).all()
    assert int(losses.balance.claims.sum()) == int(losses.balance.load.sum())


def losses_and_gradients(model: TranslationModel) -> list[Tensor]:
    losses = model(Sentences.from_padded(SRC), Sentences.from_padded(TGT))
    assert losses.balance is not None
    total = losses.objective + losses.balance.auxiliary
    return [total.detach(), *torch.autograd.grad(total, list(model.parameters()), allow_unused=True)]


@pytest.mark.parametrize("architecture", ["encdec", "prefix-lm-toponly", "causal-lm"])
def test_checkpointing_activations_changes_nothing(architecture: Architecture) -> None:
    model = make_model(replace(CONFIG, architecture=architecture)).train()
    plain = losses_and_gradients(model)
    for stack in model.modules():
        if hasattr(stack, "checkpointing"):
            stack.checkpointing = True
    for ours, theirs in zip(losses_and_gradients(model), plain, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs)


def test_the_auxiliary_loss_moves_the_gate_towards_balance() -> None:
    mixture = make_mixture(replace(CONFIG, second_expert="always"), seed=2)
    batch = sentences([64])
    x = 0.5 + torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        mixture.gate.weight[0] += 0.5

    def auxiliary() -> Tensor:
        routes = routes_for(batch)
        mixture(x, routes.sources())
        return routes.balance(1).auxiliary

    before = float(auxiliary().detach())
    for _ in range(200):
        (gradient,) = torch.autograd.grad(auxiliary(), mixture.gate.weight)
        with torch.no_grad():
            mixture.gate.weight -= 0.5 * gradient
    after = float(auxiliary().detach())
    assert before > 1.1
    assert after < 1.05


def test_bfloat16_states_are_routed_in_float32() -> None:
    mixture = make_mixture(replace(CONFIG, second_expert="always", capacity_factor=9.0))
    x = torch.randn(12, 16).bfloat16()
    routes = routes_for(sentences([12]))
    y = mixture(x, routes.sources())
    assert y.dtype == torch.bfloat16
    expected = best_two(mixture, x.float())
    torch.testing.assert_close(y.float(), expected, rtol=0.1, atol=0.1)
    gates = F.linear(x.float(), mixture.gate.weight.detach()).softmax(-1)
    first = gates.argmax(-1).bincount(minlength=4) / 12
    auxiliary = 4 * float((first * gates.mean(0)).sum())
    assert float(routes.balance(1).auxiliary.detach()) == pytest.approx(auxiliary, rel=1e-5)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mnmt_moe_ext", None)
    with pytest.raises(RunError, match=r"^`num_experts` above 0 needs the package mnmt-moe-ext: pip install"):
        build_model(CONFIG, VOCAB_SIZE)


def test_without_compiled_operators_the_reference_runs_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model(CONFIG).train()
    compiled = losses_and_gradients(model)
    monkeypatch.setattr(mnmt_moe_ext, "is_available", lambda device: False)
    monkeypatch.setattr(expert_operators, "_warned", set())
    for ours, theirs in zip(losses_and_gradients(model), compiled, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "plain-torch reference runs, many times slower" in caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts": 1}, "`num_experts` must be 0 for a dense model, or at least 2, but is 1."),
        ({"num_experts": -4}, "`num_experts` must be 0 for a dense model, or at least 2, but is -4."),
        ({"experts_every": 0}, "`experts_every` must be at least 1, but is 0."),
        ({"capacity_factor": 0.0}, "`capacity_factor` must be above 0, but is 0.0."),
        ({"second_expert_threshold": -1.0}, "`second_expert_threshold` must be above 0, but is -1.0."),
        ({"eval_capacity_factor": -1.0}, "`eval_capacity_factor` must be at least 0, but is -1.0."),
    ],
)
def test_what_is_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(CONFIG, **changes)
