import math
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from mnmt_model.optim.adafactor import Adafactor

Array = npt.NDArray[np.float32] | npt.NDArray[np.float64]


def reference(parameter: Array, gradients: Sequence[Array | None], lr: float) -> Array:
    """Adafactor without momentum, straight from its definition, in float64."""
    theta = parameter.astype(float)
    v, row, column = np.zeros(theta.shape), np.zeros(theta.shape[0]), np.zeros(theta.shape[-1])
    for t, gradient in enumerate((g for g in gradients if g is not None), start=1):
        g, beta2 = gradient.astype(float), 1 - t**-0.8
        square = g * g + 1e-30
        if theta.ndim == 2 and min(theta.shape) >= 128:
            row = beta2 * row + (1 - beta2) * square.mean(1)
            column = beta2 * column + (1 - beta2) * square.mean(0)
            v = np.outer(row, column) / row.mean()
        else:
            v = beta2 * v + (1 - beta2) * square
        u = g / np.sqrt(v)
        u = u / max(1.0, np.sqrt(np.mean(u**2)))
        theta = theta - lr * max(1e-3, np.sqrt(np.mean(theta**2))) * u
    return theta


@pytest.mark.parametrize(
    ("shape", "scale"),
    [((7,), 1.0), ((5, 300), 1.0), ((128, 130), 1.0), ((130, 257), 1e-4), ((127, 130), 1e3)],
    ids=["vector", "narrow", "factored", "small weights", "almost factored"],
)
def test_follows_the_definition(shape: tuple[int, ...], scale: float) -> None:
    generator = np.random.default_rng(0)
    start = np.float32(scale) * generator.standard_normal(shape, np.float32)
    gradients = [generator.standard_normal(shape, np.float32) * np.float32(10**-k) for k in range(4)]
    (ours,) = trained([start], [[gradient] for gradient in gradients], 0.05)
    np.testing.assert_allclose(ours, reference(start, gradients, 0.05), rtol=2e-5, atol=1e-6 * scale)


def test_each_parameter_counts_its_own_steps() -> None:
    generator = np.random.default_rng(1)
    starts = [
        generator.standard_normal(shape, np.float32) for shape in [(9,), (4, 6), (128, 128), (129, 128)]
    ]
    gradients = [[generator.standard_normal(start.shape, np.float32) for start in starts] for _ in range(4)]
    seldom = [[g if (i + t) % 2 else None for i, g in enumerate(row)] for t, row in enumerate(gradients)]
    for i, ours in enumerate(trained(starts, seldom, 0.1)):
        expected = reference(starts[i], [row[i] for row in seldom], 0.1)
        np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(128, 130), (130, 5), (4, 3)], ids=["factored", "narrow", "small"])
def test_a_stack_of_matrices_is_updated_as_each_would_be_alone(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(2)
    scales = np.float32([1.0, 1e-5, 30.0])[:, None, None]
    start = scales * generator.standard_normal((3, *shape), np.float32)
    gradients = [scales**k * generator.standard_normal((3, *shape), np.float32) for k in (0, 1, -1, 2)]
    (ours,) = trained([start], [[gradient] for gradient in gradients], 0.05)
    alone = trained(list(start), [list(each) for each in gradients], 0.05)
    np.testing.assert_allclose(ours, alone, rtol=1e-6)


def trained(starts: Sequence[Array], gradients: Sequence[Sequence[Array | None]], lr: float) -> list[Array]:
    """The parameters after a step with each row of gradients."""
    parameters = [torch.nn.Parameter(torch.tensor(start)) for start in starts]
    optimizer = Adafactor(parameters, lr=lr)
    for row in gradients:
        step(
            optimizer, parameters, [None if gradient is None else torch.tensor(gradient) for gradient in row]
        )
    return [parameter.detach().numpy() for parameter in parameters]


def step(
    optimizer: Adafactor, parameters: list[torch.nn.Parameter], gradients: Sequence[Tensor | None]
) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()


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


def test_a_restored_optimizer_goes_on_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(7,), (130, 129)]
    parameters = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    gradients = [[torch.randn(shape, generator=generator) for shape in shapes] for _ in range(3)]
    optimizer = Adafactor(parameters, lr=0.05)
    step(optimizer, parameters, gradients[0])
    step(optimizer, parameters, gradients[1])
    copies = [torch.nn.Parameter(parameter.detach().clone()) for parameter in parameters]
    restored = Adafactor(copies, lr=0.05)
    # A deep copy, for load_state_dict shares tensors.
    restored.load_state_dict(deepcopy(optimizer.state_dict()))
    step(restored, copies, gradients[2])
    step(optimizer, parameters, gradients[2])
    for parameter, copy in zip(parameters, copies, strict=True):
        torch.testing.assert_close(copy, parameter, rtol=0, atol=0)
