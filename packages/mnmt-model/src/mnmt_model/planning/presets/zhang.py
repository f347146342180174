"""The models of Zhang et al. 2022: encoder-decoders of 1 to 26 layers, and language models as large.

The name says everything: `zhang-base-l6-encdec`, `zhang-big-l14-prefix-lm-toponly-deep-prenorm`. The layers
named are those of the encoder-decoder (of each of its stacks) that a language model is aligned with: by its
d_ff (`wide`) or by its layers (`deep`).

The widths are those of Sec. 4. The parts are those of Vaswani et al. 2017, with which the big
encoder-decoder of 14 layers has the "about 412M" parameters of Table 3: 411,500,544.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import cast

from mnmt_model.planning.parameter_count import count
from mnmt_model.planning.presets.definition import Preset
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig

MAX_LAYERS = 26

_LANGUAGE_MODELS = "|".join(name for name in ARCHITECTURES if name != "encdec")

ZHANG_FAMILIES = (
    f"zhang-(base|big)-l(1 to {MAX_LAYERS})-encdec[-prenorm]",
    f"zhang-(base|big)-l(1 to {MAX_LAYERS})-({_LANGUAGE_MODELS})-(deep|wide)[-prenorm]",
)
"""The forms of the names."""

_BASE = ModelConfig(d_model=512, num_heads=8, d_ff=2048, **VASWANI)
_WIDTHS = {"base": _BASE, "big": replace(_BASE, d_model=1024, num_heads=16, d_ff=4096)}

_NAME = re.compile(
    r"zhang-(?P<width>base|big)-l(?P<layers>\d{1,2})-"
    rf"(?P<architecture>{'|'.join(sorted(ARCHITECTURES, key=len, reverse=True))})"
    r"(-(?P<grown>deep|wide))?(?P<prenorm>-prenorm)?"
)


def zhang_preset(name: str) -> Preset | None:
    """The model called `name`, or None where no model has such a name."""
    found = _NAME.fullmatch(name)
    if not found or not 1 <= int(found["layers"]) <= MAX_LAYERS:
        return None
    architecture = cast(Architecture, found["architecture"])
    if (architecture == "encdec") != (found["grown"] is None):
        return None
    encdec = replace(
        _WIDTHS[found["width"]],
        decoder_layers=int(found["layers"]),
        norm_order="pre" if found["prenorm"] else "post",
    )
    grow = {"deep": deepened, "wide": widened}.get(found["grown"] or "")
    return Preset(
        config=grow(encdec, architecture) if grow else encdec,
        vocab_size=32_000,
        source="Zhang et al. 2022, Sec. 4 and 5",
    )


def widened(encdec: ModelConfig, architecture: Architecture) -> ModelConfig:
    """The language model of as many layers and 3 d_ff: 4d² + 24d² a layer, as many as a pair's 28d²."""
    return replace(encdec, architecture=architecture, encoder_layers=None, d_ff=3 * encdec.d_ff)


def deepened(encdec: ModelConfig, architecture: Architecture) -> ModelConfig:
    """The language model of the same widths that is nearest in N, so within half of one of its layers.

    A layer has 12d² to a pair's 28d², which comes to 7/3 layers a pair.
    """
    model = replace(encdec, architecture=architecture, encoder_layers=None, decoder_layers=1)
    one, two = _size(model), _size(replace(model, decoder_layers=2))
    return replace(model, decoder_layers=1 + max(0, round((_size(encdec) - one) / (two - one))))


def _size(config: ModelConfig) -> int:
    return count(config, 1).size
