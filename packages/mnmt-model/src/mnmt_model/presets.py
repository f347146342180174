"""Named shapes: the eight models of Fernandes et al. 2023, Table A."""

from __future__ import annotations

from mnmt_model.errors import RunError
from mnmt_model.shape import Shape


def _table_a_row(layers: int, d_model: int, num_heads: int, head_dim: int) -> Shape:
    return Shape(
        encoder_layers=layers,
        decoder_layers=layers,
        d_model=d_model,
        num_heads=num_heads,
        head_dim=head_dim,
        d_ff=4 * d_model,
    )


PRESETS: dict[str, Shape] = {
    "fernandes-l2-d512": _table_a_row(2, 512, 8, 64),
    "fernandes-l3-d768": _table_a_row(3, 768, 12, 64),
    "fernandes-l6-d768": _table_a_row(6, 768, 12, 64),
    "fernandes-l9-d768": _table_a_row(9, 768, 12, 64),
    "fernandes-l9-d1024": _table_a_row(9, 1024, 16, 64),
    "fernandes-l12-d1024": _table_a_row(12, 1024, 16, 64),
    "fernandes-l12-d1280": _table_a_row(12, 1280, 16, 80),
    "fernandes-l12-d1536": _table_a_row(12, 1536, 16, 96),
}

VOCAB_SIZE = 128_000
"""Vocabulary of the published models (the seventh was evidently run with 128,128)."""


def preset(name: str) -> Shape:
    """The shape called `name`.

    Raises:
        RunError: if there is no such preset; the message lists those there are.
    """
    if name not in PRESETS:
        raise RunError(f"there is no preset {name!r}; the presets are {', '.join(PRESETS)}")
    return PRESETS[name]
