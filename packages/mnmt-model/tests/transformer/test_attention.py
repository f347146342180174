"""The attention whose gradient is written out, against torch's operators one after the other."""

import pytest
import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention, softmax_attention
from mnmt_model.transformer.model_config import ModelConfig

BATCH, HEADS, QUERIES, WIDTH = 3, 2, 4, 5


def draw(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


# Torch's softmax is used from 16 keys on.
@pytest.mark.parametrize("keys", [1, 7, 20])
@pytest.mark.parametrize("bias_shape", [(BATCH, 1, 1), (1, HEADS, QUERIES), (BATCH, HEADS, QUERIES)])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_attention_and_its_gradients_are_torchs(keys: int, bias_shape: tuple[int, ...], scale: float) -> None:
    q = draw(BATCH, HEADS, QUERIES, WIDTH, seed=1)
    k, v = (draw(BATCH, HEADS, keys, WIDTH, seed=seed) for seed in (2, 3))
    inputs = [q, k, v, draw(*bias_shape, keys, seed=4)]
    actual = softmax_attention(*inputs, scale=scale)
    expected = (scale * q @ k.mT + inputs[3]).softmax(-1) @ v
    torch.testing.assert_close(actual, expected)
    with torch.no_grad():
        torch.testing.assert_close(softmax_attention(*inputs, scale=scale), expected, rtol=1e-5, atol=1e-6)
    gradient = draw(*actual.shape, seed=5).detach()
    for ours, theirs in zip(
        torch.autograd.grad(actual, inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_gradients_see_the_mask_of_the_weights() -> None:
    inputs = [*(draw(1, HEADS, 3, WIDTH, seed=seed) for seed in (1, 2, 3)), draw(1, 1, 1, 3, seed=4)]

    def seeded(*inputs: Tensor) -> Tensor:
        torch.manual_seed(5)
        return softmax_attention(*inputs, scale=1.0, rate=0.4)

    assert not torch.allclose(seeded(*inputs), softmax_attention(*inputs, scale=1.0))
    assert torch.autograd.gradcheck(seeded, inputs)


@pytest.mark.parametrize("number", [2, 3])
def test_heads_that_a_gpu_reads_in_place_are_those_that_are_copied(number: int) -> None:
    attention = Attention(ModelConfig(d_model=HEADS * WIDTH, num_heads=HEADS), dropout=0.0)
    table = draw(BATCH, QUERIES, number * HEADS * WIDTH, seed=1)
    copies, in_place = attention.split_heads(table, number), attention.heads_in_place(table, number)
    assert len(copies) == number
    assert all(map(torch.equal, copies, in_place))
