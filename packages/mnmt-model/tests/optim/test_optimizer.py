import pytest
import torch
from torch import nn

from mnmt_model import TrainConfig
from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.optim.optimizer import (
    clip_gradients,
    decay_groups,
    learning_rate,
    make_optimizer,
    step_if,
)


class Model(nn.Module):
    """One parameter of every kind that a translation model has."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, 4)
        self.position_bias = nn.Embedding(32, 2)
        self.norm = nn.LayerNorm(4)
        self.wo = nn.Linear(4, 4)
        self.experts = nn.Parameter(torch.ones(3, 4, 2))


def test_only_matrices_and_embeddings_decay() -> None:
    model = Model()
    names = {parameter: name for name, parameter in model.named_parameters()}
    decayed, others = decay_groups(model, 0.1)
    assert [names[p] for p in decayed["params"]] == ["experts", "embedding.weight", "wo.weight"]
    assert [names[p] for p in others["params"]] == [
        "position_bias.weight",
        "norm.weight",
        "norm.bias",
        "wo.bias",
    ]
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.1, 0.0)


def test_adamw_shrinks_decayed_weights_by_rate_times_decay() -> None:
    model = Model()
    optimizer = make_optimizer(model, TrainConfig(optimizer="adamw", learning_rate=0.5, weight_decay=0.1))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        factor = 0.95 if name in ("experts", "embedding.weight", "wo.weight") else 1.0
        torch.testing.assert_close(parameter.detach(), before[name] * factor)


def test_adafactor_has_every_parameter() -> None:
    model = Model()
    optimizer = make_optimizer(model, TrainConfig(learning_rate=0.02))
    assert isinstance(optimizer, Adafactor)
    (group,) = optimizer.param_groups
    assert group["lr"] == 0.02
    assert list(map(id, group["params"])) == list(map(id, model.parameters()))


class Factored(nn.Module):
    """A matrix and a stack of two with factored second moments in Adafactor, and a vector."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        for name, shape in {"matrix": (128, 130), "stack": (2, 130, 128), "vector": (7,)}.items():
            self.register_parameter(name, nn.Parameter(torch.randn(shape, generator=generator)))


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
@pytest.mark.parametrize("rejected", [(0,), (0, 1, 2), (3, 5)], ids=str)
def test_a_rejected_step_changes_nothing(optimizer: str, rejected: tuple[int, ...]) -> None:
    config = TrainConfig(optimizer=optimizer, learning_rate=0.1)
    models = Factored(), Factored()
    ours, theirs = (make_optimizer(model, config) for model in models)
    generator = torch.Generator().manual_seed(1)
    for step in range(8):
        for our, their in zip(*(model.parameters() for model in models), strict=True):
            our.grad = torch.randn(our.shape, generator=generator)
            their.grad = our.grad.clone()
            if step in rejected:
                our.grad.flatten()[step::3] = [torch.nan, torch.inf, -torch.inf][step % 3]
        step_if(torch.tensor(step not in rejected), ours)
        if step not in rejected:
            theirs.step()
        assert all(map(torch.equal, *(model.parameters() for model in models)))
    for our, their in zip(*(model.parameters() for model in models), strict=True):
        assert all(torch.equal(ours.state[our][name], theirs.state[their][name]) for name in ours.state[our])


@pytest.mark.parametrize(("clip_norm", "after"), [(0.0, 10.0), (20.0, 10.0), (5.0, 5.0)])
def test_gradients_are_scaled_down_to_the_norm(clip_norm: float, after: float) -> None:
    model = nn.Linear(2, 1)
    model.weight.grad, model.bias.grad = torch.tensor([[6.0, 0.0]]), torch.tensor([8.0])
    norm = clip_gradients(model.parameters(), clip_norm)
    assert type(norm) is torch.Tensor
    assert norm.shape == ()
    assert norm == 10.0
    clipped = torch.cat([model.weight.grad.flatten(), model.bias.grad])
    torch.testing.assert_close(clipped, torch.tensor([6.0, 0.0, 8.0]) * after / 10)


@pytest.mark.parametrize("clip_norm", [0.1, 1e6])
def test_plain_gradients_are_clipped_as_torch_clips_them(clip_norm: float) -> None:
    ours, theirs = Model(), Model()
    for model in (ours, theirs):
        generator = torch.Generator().manual_seed(0)
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
    norm = clip_gradients(ours.parameters(), clip_norm)
    assert norm == nn.utils.clip_grad_norm_(theirs.parameters(), clip_norm)
    for our, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(our.grad, their.grad)


@pytest.mark.parametrize(("step", "rate"), [(1, 0.01), (10_000, 0.01), (40_000, 0.005), (250_000, 0.002)])
def test_the_papers_schedule_is_one_over_root_step(step: int, rate: float) -> None:
    config = TrainConfig(steps=500_000, learning_rate=0.01, constant_steps=10_000)
    assert learning_rate(config, step) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 0.1), (5, 0.5), (10, 1.0), (80, 1.0), (91, 1.0), (96, 0.5), (100, 0.1)]
)
def test_warm_up_and_cool_down_are_lines(step: int, rate: float) -> None:
    config = TrainConfig(steps=100, learning_rate=1.0, warmup_steps=10, cooldown_steps=10)
    assert learning_rate(config, step) == pytest.approx(rate)
