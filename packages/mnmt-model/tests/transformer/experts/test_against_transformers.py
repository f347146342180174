"""Mixtures of experts against those of Hugging Face, with the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pytest
import torch
from torch import Tensor, nn

from mnmt_model import ModelConfig
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.experts.routes import Routes, RoutingContext
from mnmt_model.transformer.sentences import Sentences

pytest.importorskip("transformers", reason="the oracle of dependency group `oracle` is not installed")

from transformers.models.hunyuan_v1_moe.configuration_hunyuan_v1_moe import HunYuanMoEV1Config
from transformers.models.hunyuan_v1_moe.modeling_hunyuan_v1_moe import HunYuanMoEV1Moe
from transformers.models.mixtral.modeling_mixtral import MixtralConfig, MixtralSparseMoeBlock
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeConfig, Qwen2MoeSparseMoeBlock

D_MODEL, D_FF, NUM_EXPERTS, NUM_TOKENS = 16, 24, 5, 40


def mixtral() -> nn.Module:
    return MixtralSparseMoeBlock(
        MixtralConfig(
            hidden_size=D_MODEL, intermediate_size=D_FF, num_local_experts=NUM_EXPERTS, num_experts_per_tok=2
        )
    )


def hunyuan() -> nn.Module:
    return HunYuanMoEV1Moe(
        HunYuanMoEV1Config(hidden_size=D_MODEL, intermediate_size=D_FF, num_experts=NUM_EXPERTS, moe_topk=2)
    )


def qwen() -> nn.Module:
    """Return one whose gate of the shared experts is always 1, as far as float32 can tell."""
    block = Qwen2MoeSparseMoeBlock(
        Qwen2MoeConfig(
            hidden_size=D_MODEL,
            moe_intermediate_size=D_FF,
            shared_expert_intermediate_size=3 * D_FF,
            num_experts=NUM_EXPERTS,
            num_experts_per_tok=2,
            norm_topk_prob=True,
        )
    )
    block.shared_expert_gate = nn.Linear(D_MODEL, 1)
    with torch.no_grad():
        block.shared_expert_gate.weight.zero_()
        block.shared_expert_gate.bias.fill_(30.0)
    return block


@dataclass(frozen=True)
class Pair:
    """A weight of ours, and theirs that make it up."""

    ours: nn.Parameter
    theirs: list[nn.Parameter]
    are_experts: bool = False

    def joined(self, parts: list[Tensor]) -> Tensor:
        """Return tensors in the layout of theirs in that of ours: transposed, a's columns and then b's."""
        if not self.are_experts:
            return parts[0]
        each = len(parts) // NUM_EXPERTS
        return torch.stack(
            [torch.cat([part.T for part in parts[i : i + each]], 1) for i in range(0, len(parts), each)]
        )


def pairs(ours: MixtureOfExperts, theirs: nn.Module) -> Iterator[Pair]:
    yield Pair(ours.gate.weight, [getattr(theirs.gate, "wg", theirs.gate).weight])
    names = ("w1", "w3", "w2") if hasattr(theirs.experts[0], "w1") else ("gate_proj", "up_proj", "down_proj")
    a, b, down = ([getattr(expert, name).weight for expert in theirs.experts] for name in names)
    yield Pair(ours.experts.wi, list(chain.from_iterable(zip(a, b, strict=True))), are_experts=True)
    yield Pair(ours.experts.wo, down, are_experts=True)
    shared = getattr(theirs, "shared_mlp", None) or getattr(theirs, "shared_expert", None)
    if shared is not None:
        for name, other in (("wi_0", "gate_proj"), ("wi_1", "up_proj"), ("wo", "down_proj")):
            yield Pair(getattr(ours.shared, name).weight, [getattr(shared, other).weight])


def routes() -> Routes:
    sentences = Sentences.from_padded(torch.full((1, NUM_TOKENS), 5))
    return Routes(RoutingContext.default(1, torch.device("cpu")), sentences, sentences)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("block", "shared_experts"), [(mixtral, 0), (hunyuan, 1), (qwen, 3)], ids=["mixtral", "hunyuan", "qwen2"]
)
def test_outputs_and_gradients_are_theirs(block, shared_experts: int, training: bool) -> None:
    torch.manual_seed(3)
    theirs = block()
    config = ModelConfig(
        d_model=D_MODEL,
        d_ff=D_FF,
        num_experts=NUM_EXPERTS,
        expert_feed_forward="gated-silu",
        shared_experts=shared_experts,
        second_expert="always",
        capacity_factor=0.0,
    )
    ours = MixtureOfExperts(config, 0.0, SINGLE_RANK).train(training)
    weights = list(pairs(ours, theirs))
    with torch.no_grad():
        for pair in weights:
            for part in pair.theirs:
                part.normal_(std=0.3)
            pair.ours.copy_(pair.joined(pair.theirs))
    x = torch.randn(1, NUM_TOKENS, D_MODEL, requires_grad=True)
    expected = theirs(x)
    expected = (expected[0] if isinstance(expected, tuple) else expected)[0]
    actual = ours(x[0], routes().sources() if training else None)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    gradient = torch.randn(NUM_TOKENS, D_MODEL)
    grad_x, *gradients = torch.autograd.grad(actual, [x, *(pair.ours for pair in weights)], gradient)
    expected.backward(gradient)
    torch.testing.assert_close(grad_x, x.grad, rtol=1e-4, atol=1e-4)
    for grad, pair in zip(gradients, weights, strict=True):
        theirs_grad = pair.joined([part.grad for part in pair.theirs])
        torch.testing.assert_close(grad, theirs_grad, rtol=1e-3, atol=1e-4)
