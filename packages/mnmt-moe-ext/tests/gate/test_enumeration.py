"""The gate agrees with the rules of the papers, followed token by token in plain Python and NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from gate_calls import routing_of
from hypothesis import given
from hypothesis import strategies as st

from mnmt_moe_ext import Routing, reference

Numbers = npt.NDArray[np.float64]


def softmax(row: Numbers) -> Numbers:
    powers = np.exp(row - row.max())
    exponentials: Numbers = powers / powers.sum()
    return exponentials


def best_experts(row: Numbers, bias: Numbers, top_k: int) -> list[int]:
    """The largest sums of logit and bias, the lower expert of equal ones."""
    return sorted(range(len(row)), key=lambda expert: (-(row[expert] + bias[expert]), expert))[:top_k]


def give_slots(experts: list[list[int]], num_experts: int, capacity: float) -> dict[tuple[int, int], int]:
    """The slots by (token, rank): all choices of a rank before the next rank, in token order."""
    used = [0] * num_experts
    slots = {}
    for rank in range(max(map(len, experts), default=0)):
        for token, choices in enumerate(experts):
            if choices and used[choices[rank]] < capacity:
                slots[token, rank] = used[choices[rank]]
                used[choices[rank]] += 1
    return slots


def weights_of(gates: Numbers, choices: list[int], kept: list[bool], renormalise: str) -> list[float]:
    chosen = [float(gates[expert]) for expert in choices]
    total = {
        "never": 1.0,
        "before": sum(chosen),
        "after": sum(gate for gate, has_slot in zip(chosen, kept, strict=True) if has_slot),
    }[renormalise]
    return [gate / total if has_slot else 0.0 for gate, has_slot in zip(chosen, kept, strict=True)]


def balance(gates: Numbers, experts: list[list[int]], num_experts: int) -> float:
    """E Σ f_e m_e of a group: f of first choices for one or two experts a token, else of all choices."""
    counted = [expert for choices in experts for expert in (choices[:1] if len(choices) <= 2 else choices)]
    shares = np.bincount(counted, minlength=num_experts) / len(counted)
    return float(num_experts * (shares * gates.mean(axis=0)).sum())


@st.composite
def gate_calls(draw: st.DrawFn) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    num_experts = draw(st.integers(1, 20))
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 30)), num_experts)
    logits = torch.randn(shape, generator=generator, dtype=torch.float64)
    bias = torch.randn(num_experts, generator=generator) if draw(st.booleans()) else None
    if draw(st.booleans()):
        logits, bias = logits.round(), None if bias is None else bias.round()
    top_k = draw(st.integers(1, min(8, num_experts)))
    return {
        "logits": logits,
        "padding_mask": torch.rand(shape[:2], generator=generator) < draw(st.sampled_from([0.0, 0.4])),
        "top_k": top_k,
        "bias": bias,
        "capacity": draw(st.sampled_from([None, 1, 2, 5])),
        "renormalise": draw(st.sampled_from(["before", "after", "never"] if top_k > 1 else ["never"])),
    }


@pytest.mark.parametrize("gate", [routing_of, reference.top_k_gate], ids=["compiled", "reference"])
@given(call=gate_calls())
def test_by_enumeration(gate: Callable[..., Routing], call: dict[str, Any]) -> None:
    logits, padding = call["logits"].numpy(), call["padding_mask"].numpy()
    groups, tokens, num_experts = logits.shape
    bias = np.zeros(num_experts) if call["bias"] is None else call["bias"].double().numpy()
    routing, losses = gate(**call), []
    for group in range(groups):
        gates = np.stack([softmax(row) for row in logits[group]])
        experts = [
            [] if padding[group, token] else best_experts(logits[group, token], bias, call["top_k"])
            for token in range(tokens)
        ]
        slots = give_slots(experts, num_experts, call["capacity"] or math.inf)
        for token, choices in enumerate(experts):
            actual_slots = routing.slots[group, token].tolist()
            if not choices:
                assert routing.experts[group, token].tolist() == actual_slots == [-1] * call["top_k"]
                continue
            assert routing.experts[group, token].tolist() == choices
            assert actual_slots == [slots.get((token, rank), -1) for rank in range(call["top_k"])]
            kept = [(token, rank) in slots for rank in range(call["top_k"])]
            expected = weights_of(gates[token], choices, kept, call["renormalise"])
            # The gate adds 1e-9 to the sum of the gates, which may be as small as e^-5 here.
            assert routing.weights[group, token].tolist() == pytest.approx(expected, rel=1e-6)
        if any(experts):
            losses.append(balance(gates[~padding[group]], [each for each in experts if each], num_experts))
    assert routing.auxiliary_loss.item() == pytest.approx(sum(losses) / max(1, len(losses)))
