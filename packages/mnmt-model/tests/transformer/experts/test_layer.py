"""The mixture-of-experts layer and models of it against every expert computed for every token."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

import mnmt_moe_ext
from mnmt_model import RunError
from mnmt_model.checkpoints import Progress, load_model, save
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.experts import operators as expert_operators
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.experts.routes import Routes, RoutingContext
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig, SecondExpert
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
    """Routes of a batch whose sentences are each of a kind of their own."""
    context = RoutingContext(
        pair_ids=torch.arange(batch.batch),
        seed_and_step=torch.tensor([3, step]),
        uniform=uniform,
        labels=torch.arange(batch.batch),
        num_labels=batch.batch,
    )
    return Routes(context, batch, batch)


@settings(max_examples=15)
@given(num_experts=st.integers(2, 9), num_tokens=st.integers(1, 20), seed=st.integers(0, 99))
def test_evaluation_is_the_best_two_of_all_experts(num_experts: int, num_tokens: int, seed: int) -> None:
    mixture = make_mixture(replace(CONFIG, num_experts=num_experts), seed=seed).eval()
    x = torch.randn(num_tokens, 16, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(mixture(x), best_two(mixture, x), rtol=1e-4, atol=1e-5)


def best_k(mixture: MixtureOfExperts, x: Tensor, *, top_k: int, renormalise: str) -> Tensor:
    """Σ G_e FFN_e(x) over the k largest of W x + b, with the gates as weights, or over their sum."""
    logits = x @ mixture.gate.weight.T
    experts = (logits + mixture.gate.balance_bias).topk(top_k).indices
    weights = logits.softmax(-1).gather(1, experts)
    if renormalise != "never":
        weights = weights / weights.sum(-1, keepdim=True)
    outputs = every_expert(mixture, x)[experts.T, torch.arange(len(x))]
    return (weights.T[..., None] * outputs).sum(0)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("renormalise", ["before", "after", "never"])
@pytest.mark.parametrize("top_k", range(1, 9))
def test_tokens_choose_their_best_by_score_and_bias(top_k: int, renormalise: str, biased: bool) -> None:
    renormalise = "never" if top_k == 1 else renormalise
    choices = {"experts_per_token": top_k, "renormalise": renormalise, "second_expert": "always"}
    mixture = make_mixture(replace(CONFIG, num_experts=9, capacity_factor=9.0, **choices))
    if biased:
        mixture.gate.balance_bias.copy_(torch.linspace(-2, 2, 9))
    x = torch.randn(14, 16, generator=torch.Generator().manual_seed(1)).requires_grad_()
    expected = best_k(mixture, x, top_k=top_k, renormalise=renormalise)
    inputs = [x, *mixture.parameters()]
    gradients = torch.autograd.grad(expected.square().sum(), inputs)
    for y in (mixture(x, routes_for(sentences([5, 9])).sources()), mixture.eval()(x)):
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
        for ours, theirs in zip(torch.autograd.grad(y.square().sum(), inputs), gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("top_k", [1, 2, 3, 5])
def test_statistics_of_a_batch_are_those_of_its_logits(top_k: int) -> None:
    renormalise = "never" if top_k == 1 else "before"
    config = replace(CONFIG, num_experts=6, experts_per_token=top_k, renormalise=renormalise)
    mixture, x = make_mixture(replace(config, second_expert="always")), torch.randn(30, 16)
    routes = routes_for(sentences([13, 17]))
    mixture(x, routes.sources())
    balance, logits = routes.balance(1), x @ mixture.gate.weight.T
    experts = logits.topk(top_k).indices
    counted = experts[:, 0] if top_k <= 2 else experts.flatten()
    assert torch.equal(balance.counts[0].long(), counted.bincount(minlength=6))
    assert torch.equal(balance.load.sum(dim=1)[0], experts.flatten().bincount(minlength=6))
    torch.testing.assert_close(balance.gate_sums[0], logits.softmax(-1).sum(dim=0))
    torch.testing.assert_close(balance.log_squares[0], logits.logsumexp(-1).square().sum())


def test_the_bias_alone_brings_loads_to_the_mean() -> None:
    mixture = make_mixture(replace(CONFIG, second_expert="always"), seed=2)
    gate, batch = mixture.gate, sentences([200])
    x = 0.5 + torch.randn(200, 16, generator=torch.Generator().manual_seed(0))

    def load() -> Tensor:
        routes = routes_for(batch)
        mixture(x, routes.sources())
        return routes.balance(1).load[0, 0].float()

    before = load()
    for _ in range(400):
        gate.balance(load(), rate=0.02)
    assert before.max() > 130
    assert (load() - 100).abs().max() < 10


def test_a_checkpoint_without_biases_leaves_them_0(tmp_path: Path) -> None:
    model, fresh = make_model(CONFIG), make_model(CONFIG)
    with torch.no_grad():
        model.embedding.weight.zero_()
    for mixture in model.mixtures:
        del mixture.gate.balance_bias
    optimizer = torch.optim.SGD(model.parameters())
    checkpoint = save(tmp_path, model, optimizer, Progress(step=1, tokens=0, flops=0, stream={}), keep=1)
    load_model(checkpoint, fresh)
    assert not fresh.embedding.weight.any()
    assert not any(mixture.gate.balance_bias.any() for mixture in fresh.mixtures)


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
    assert balance.load.tolist() == [[[16, 16, 0, 0], [16, 16, 0, 0]]]
    assert balance.drops.tolist() == [24, 32]
    # All first choices at expert 0: E f_0 m_0.
    gates = (x @ mixture.gate.weight.detach().T).softmax(-1)
    assert float(balance.auxiliary.detach()) == pytest.approx(4 * float(gates[:, 0].mean()), rel=1e-5)


@pytest.mark.parametrize("second_expert", ["always", "random"])
@settings(max_examples=20)
@given(group_size=st.integers(1, 20), num_tokens=st.integers(1, 30), seed=st.integers(0, 99))
def test_each_group_of_tokens_is_routed_as_if_alone(
    second_expert: SecondExpert, group_size: int, num_tokens: int, seed: int
) -> None:
    config = replace(CONFIG, capacity_factor=0.5, second_expert=second_expert)
    grouped, alone = (make_mixture(replace(config, group_size=size), seed=seed) for size in (group_size, 0))
    x = torch.randn(num_tokens, 16, generator=torch.Generator().manual_seed(seed))
    routes = routes_for(sentences([num_tokens]))
    y = grouped(x, routes.sources())
    balance, drops, auxiliary = routes.balance(1), 0, 0.0
    for first in range(0, num_tokens, group_size):
        part = torch.arange(first, min(first + group_size, num_tokens))
        # The last group has the slots of a whole one.
        alone.gate.capacity = lambda _: config.expert_capacity(group_size, 0.5)  # type: ignore[method-assign]
        one = routes_for(sentences([num_tokens]))
        tokens = replace(one.sources(), ids=one.sources().ids[part], pairs=one.sources().pairs[part])
        torch.testing.assert_close(alone(x[part], tokens), y[part])
        drops += int(one.balance(1).drops.sum())
        auxiliary += float(one.balance(1).auxiliary.detach())
    assert int(balance.drops.sum()) == drops
    num_groups = -(-num_tokens // group_size)
    assert float(balance.auxiliary.detach()) == pytest.approx(auxiliary / num_groups, rel=1e-5)


def test_uniform_choices_spread_over_small_groups() -> None:
    mixture = make_mixture(replace(CONFIG, group_size=3))
    routes = routes_for(sentences([10, 10]), uniform=True)
    mixture(torch.randn(20, 16), routes.sources())
    assert routes.balance(1).load.sum(dim=1).tolist() == [[10, 10, 10, 10]]


@pytest.mark.parametrize("group_size", [0, 8])
def test_no_tokens_make_no_output(group_size: int) -> None:
    mixture = make_mixture(replace(CONFIG, group_size=group_size)).eval()
    assert mixture(torch.empty(0, 16)).shape == (0, 16)


def test_random_choices_go_with_the_tokens_wherever_they_are() -> None:
    mixture = make_mixture(replace(CONFIG, capacity_factor=9.0))
    x = torch.randn(3, 4, 16, generator=torch.Generator().manual_seed(5))
    batch = sentences([4, 4, 4])
    together = mixture(x.view(12, 16), routes_for(batch).sources()).view(3, 4, 16)
    for row in (2, 0, 1):
        one = sentences([4])
        context = RoutingContext(pair_ids=torch.tensor([row]), seed_and_step=torch.tensor([3, 0]))
        apart = mixture(x[row], Routes(context, one, one).sources())
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
    assert losses.balance.load.shape == (len(model.mixtures), 1, 4)
    assert (losses.balance.load.sum(dim=2) > 0).all()


@settings(max_examples=15)
@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    lengths=st.lists(st.integers(1, 5), min_size=6, max_size=6),
    seed=st.integers(0, 99),
)
def test_choices_are_counted_by_layer_label_and_expert(
    labels: list[int], lengths: list[int], seed: int
) -> None:
    batch = sentences(lengths[: len(labels)])
    context = RoutingContext(
        pair_ids=torch.arange(batch.batch),
        seed_and_step=torch.tensor([3, 0]),
        labels=torch.tensor(labels),
        num_labels=3,
    )
    routes = Routes(context, batch, batch)
    # Few slots, and none for some: what is dropped was chosen too.
    config = replace(CONFIG, second_expert="always", capacity_factor=0.5)
    x = torch.randn(batch.num_tokens, 16, generator=torch.Generator().manual_seed(seed))
    expected = np.zeros((2, 3, 4), dtype=np.int64)
    token_labels = np.repeat(labels, lengths[: len(labels)])
    for number, side in enumerate((routes.sources, routes.targets)):
        mixture = make_mixture(config, seed=seed + number)
        mixture.gate.number = number
        mixture(x, side())
        best = (x @ mixture.gate.weight.T).topk(config.experts_per_token).indices.numpy()
        np.add.at(expected[number], (token_labels[:, None], best), 1)
    balance = routes.balance(2)
    assert balance.load.tolist() == expected.tolist()
    slots = config.expert_capacity(batch.num_tokens, 0.5)
    assert int(balance.drops.sum()) == np.maximum(expected.sum(axis=1) - slots, 0).sum()


def losses_and_gradients(model: TranslationModel) -> list[Tensor]:
    losses = model(Sentences.from_padded(SRC), Sentences.from_padded(TGT))
    assert losses.balance is not None
    total = losses.objective + losses.balance.auxiliary
    return [total.detach(), *torch.autograd.grad(total, list(model.parameters()), allow_unused=True)]


def test_one_expert_is_a_feed_forward() -> None:
    config = replace(CONFIG, num_experts=1, experts_per_token=1, renormalise="never", capacity_factor=0.0)
    batch = sentences([5, 3])
    x = torch.randn(batch.num_tokens, 16, generator=torch.Generator().manual_seed(1))
    mixture = make_mixture(config)
    expected = every_expert(mixture, x)[0]
    torch.testing.assert_close(mixture(x, routes_for(batch).sources()), expected)
    torch.testing.assert_close(mixture.eval()(x), expected)
    losses = make_model(config).train()(Sentences.from_padded(SRC), Sentences.from_padded(TGT))
    # 1 for the mixture of the encoder, and of the decoder.
    assert losses.balance.auxiliary.item() == pytest.approx(2)


# Torch's compiler calls what torch itself deprecates.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_compiled_layers_compute_the_same() -> None:
    model = make_model(CONFIG).train()
    plain = losses_and_gradients(model)
    evaluated = model.eval()(Sentences.from_padded(SRC), Sentences.from_padded(TGT)).pair_nats
    for layer in model.modules():
        if isinstance(layer, Layer):
            layer.compile(dynamic=True, backend="aot_eager")
    for ours, theirs in zip(losses_and_gradients(model.train()), plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    again = model.eval()(Sentences.from_padded(SRC), Sentences.from_padded(TGT)).pair_nats
    torch.testing.assert_close(again, evaluated, rtol=1e-4, atol=1e-4)


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
