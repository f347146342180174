import math

import pytest
import torch
from torch import Tensor

from mnmt_model.adafactor import Adafactor, is_factored


def reference(parameter: Tensor, gradients: list[Tensor], lr: float) -> Tensor:
    """Adafactor without momentum, straight from its definition, in float64."""
    theta = parameter.double()
    v = torch.zeros_like(theta)
    row, column = torch.zeros(theta.shape[0]).double(), torch.zeros(theta.shape[-1]).double()
    for t, gradient in enumerate(gradients, start=1):
        g, beta2 = gradient.double(), 1 - t**-0.8
        square = g * g + 1e-30
        if is_factored(parameter):
            row = beta2 * row + (1 - beta2) * square.mean(1)
            column = beta2 * column + (1 - beta2) * square.mean(0)
            v = torch.outer(row, column) / row.mean()
        else:
            v = beta2 * v + (1 - beta2) * square
        u = g / v.sqrt()
        u = u / max(1.0, float(u.square().mean().sqrt()))
        theta = theta - lr * max(1e-3, float(theta.square().mean().sqrt())) * u
    return theta


@pytest.mark.parametrize("shape", [(7,), (5, 300), (128, 130)], ids=["vector", "narrow", "factored"])
def test_follows_the_definition(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(shape, generator=generator)
    gradients = [torch.randn(shape, generator=generator) * 10**-k for k in range(4)]
    parameter = torch.nn.Parameter(start.clone())
    optimizer = Adafactor([parameter], lr=0.05)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    torch.testing.assert_close(parameter.double(), reference(start, gradients, 0.05), rtol=1e-5, atol=1e-6)


def test_agrees_with_torch_on_a_factored_matrix() -> None:
    start = torch.randn(130, 140, generator=torch.Generator().manual_seed(1))
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    optimizers = Adafactor([ours], lr=0.01), torch.optim.Adafactor([theirs], lr=0.01, eps=(1e-30, 1e-3))
    for seed in range(5):
        gradient = torch.randn(130, 140, generator=torch.Generator().manual_seed(seed))
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.param_groups[0]["lr"] = 0.01
            optimizer.step()
    # torch's rate is min(lr, 1/sqrt(t)), which is lr here.
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_zero_gradient_row_leaves_finite_weights() -> None:
    parameter = torch.nn.Parameter(torch.ones(130, 130))
    gradient = torch.ones(130, 130)
    gradient[3] = 0
    parameter.grad = gradient
    Adafactor([parameter], lr=0.1).step()
    assert torch.isfinite(parameter).all()


def test_the_step_is_relative_to_the_parameter() -> None:
    small, large = torch.nn.Parameter(torch.full((4,), 1e-2)), torch.nn.Parameter(torch.full((4,), 10.0))
    for parameter in (small, large):
        parameter.grad = torch.ones(4)
    Adafactor([small, large], lr=0.1).step()
    assert math.isclose(float(small[0].detach()), 1e-2 * 0.9, rel_tol=1e-5)
    assert math.isclose(float(large[0].detach()), 10.0 * 0.9, rel_tol=1e-5)
