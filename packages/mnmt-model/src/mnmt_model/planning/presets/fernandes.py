"""The eight models of Fernandes et al. 2023, Table A: T5 1.1 encoder-decoders."""

from __future__ import annotations

from mnmt_model.planning.presets.definition import Preset
from mnmt_model.transformer.model_config import ModelConfig


def _row(layers: int, d_model: int, num_heads: int, head_dim: int, vocab_size: int = 128_000) -> Preset:
    config = ModelConfig(
        decoder_layers=layers,
        d_model=d_model,
        num_heads=num_heads,
        head_dim=head_dim,
        d_ff=4 * d_model,
    )
    return Preset(config=config, vocab_size=vocab_size, source="Fernandes et al. 2023, Table A")


FERNANDES = {
    "fernandes-l2-d512": _row(2, 512, 8, 64),
    "fernandes-l3-d768": _row(3, 768, 12, 64),
    "fernandes-l6-d768": _row(6, 768, 12, 64),
    "fernandes-l9-d768": _row(9, 768, 12, 64),
    "fernandes-l9-d1024": _row(9, 1024, 16, 64),
    "fernandes-l12-d1024": _row(12, 1024, 16, 64),
    # The published number of parameters of this row comes out with 128,128 words, and with no other number.
    "fernandes-l12-d1280": _row(12, 1280, 16, 80, vocab_size=128_128),
    "fernandes-l12-d1536": _row(12, 1536, 16, 96),
}
