"""The dense models that the mixtures of experts of GShard (Lepikhin et al. 2020, M4) are compared with.

The source gives widths, depths and sizes; the parts it is silent about are T5's, but for the ReLU.
"""

from __future__ import annotations

from dataclasses import replace

from mnmt_model.planning.presets.definition import Preset
from mnmt_model.transformer.model_config import ModelConfig

_T96L = ModelConfig(
    decoder_layers=48,
    d_model=1024,
    num_heads=16,
    head_dim=64,
    d_ff=8192,
    feed_forward="relu",
    embeddings="tied-target",
)

M4 = {
    "m4-t96l": Preset(
        config=_T96L,
        vocab_size=32_000,
        src_vocab_size=64_000,
        source="M4, T(96L): 2.3B weights, 100 languages to English",
    ),
    "m4-baseline": Preset(
        config=replace(_T96L, decoder_layers=6, embeddings="separate"),
        vocab_size=32_000,
        source="M4, a bilingual baseline: 0.4B weights",
    ),
}
