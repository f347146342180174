"""How far float32 results of one model may lie apart, on whatever processor.

Processors sum in orders of their own, and what they compute is at best the exact result of a model whose
weights have other last bits (Higham 2002, Accuracy and Stability of Numerical Algorithms, §1.5). How far the
results of such models lie apart grows with depth, magnitudes and condition: a softmax without a scale over
large scores makes 1,000 times of what the precision alone would. So it is measured, on the model in question.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

EPSILON = torch.finfo(torch.float32).eps
SLACK = 8
"""Errors were .1 to 1.3 of the largest of three changes with kernels for Zen 5, Ice Lake and SSE4.1."""


@torch.no_grad()
def tolerance(model: nn.Module, compute: Callable[[], Tensor], *, changes: int = 3) -> float:
    """Return how far `compute()` may be from its exact value, absolutely.

    Args:
        model: Float32, as it stands after the call too.
        compute: A function of the model's parameters, without a random choice.
        changes: Times that every parameter is multiplied by 1 ± 2⁻²³, each at random.
    """
    result = compute()
    weights = [parameter.clone() for parameter in model.parameters()]
    farthest = EPSILON * result.abs().max()
    for seed in range(changes):
        generator = torch.Generator().manual_seed(seed)
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            signs = 2 * torch.randint(2, weight.shape, generator=generator) - 1
            parameter.copy_(weight * (1 + EPSILON * signs))
        farthest = torch.maximum(farthest, (compute() - result).abs().max())
    for parameter, weight in zip(model.parameters(), weights, strict=True):
        parameter.copy_(weight)
    return SLACK * float(farthest)


def assert_close(actual: Tensor, expected: Tensor, model: nn.Module, compute: Callable[[], Tensor]) -> None:
    """Fail if `actual` is farther from `expected` than `compute()` may be from its exact value."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance(model, compute))
