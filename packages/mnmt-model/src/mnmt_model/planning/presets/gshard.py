"""The mixtures of experts of GShard (Lepikhin et al. 2020): 12.5B to 600B weights.

The source gives widths, depths, experts and sizes, which are rounded: weights counted here are 3 to 7% more.
The parts it is silent about are those of the dense models of `m4.py`.
"""

from __future__ import annotations

from dataclasses import replace

from mnmt_model.planning.presets.definition import Preset
from mnmt_model.planning.presets.m4 import M4

PUBLISHED_BILLIONS = {
    (128, 12): 12.5,
    (128, 36): 37,
    (512, 12): 50,
    (512, 36): 150,
    (2048, 12): 200,
    (2048, 36): 600,
}
"""Weights that the source gives to so many experts and layers, of which the encoder has half."""


def _mixture(num_experts: int, layers: int, billions: float) -> Preset:
    dense = M4["m4-t96l"]
    config = replace(dense.config, num_experts=num_experts, decoder_layers=layers // 2, head_dim=128)
    source = f"GShard, MoE({num_experts}E, {layers}L): {billions:g}B weights, 100 languages to English"
    return replace(dense, config=config, source=source)


GSHARD = {
    f"gshard-e{num_experts}-l{layers}": _mixture(num_experts, layers, billions)
    for (num_experts, layers), billions in PUBLISHED_BILLIONS.items()
}
