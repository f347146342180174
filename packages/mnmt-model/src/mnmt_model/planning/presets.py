"""Published models by name.

- `fernandes-…`: the eight T5 1.1 encoder-decoders of Fernandes et al. 2023, Table A.
- `m4-…`: the dense baselines of the mixtures of experts of GShard (Lepikhin et al. 2020).
  The source gives widths, depths and sizes; all other parts are those of T5, except ReLU.
- `gshard-…`: the mixtures of experts of GShard, 12.5B to 600B weights. The source gives widths, depths,
  experts and rounded sizes; the weights counted here are 3 to 7% more. Other parts are those of `m4-…`.
- `zhang-…`: the models of Zhang et al. 2022, encoder-decoders of 1 to 26 layers and language models of the
  same size, such as `zhang-base-l6-encdec` and `zhang-big-l14-prefix-lm-toponly-deep-prenorm`. The layers in
  the name are those of the encoder-decoder (of each of its stacks) that a language model is aligned with: by
  its d_ff (`wide`) or by its layers (`deep`). The widths are those of Sec. 4. The parts are those of Vaswani
  et al. 2017, with which the big encoder-decoder of 14 layers has the "about 412M" parameters of Table 3:
  411,500,544.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import cast

from mnmt_model.errors import RunError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture, ModelConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A published model: its parts, and the vocabulary it was published with."""

    config: ModelConfig
    vocab_size: int
    """Rows of the embedding of the target and of the softmax."""
    src_vocab_size: int | None = None
    """Rows of the embedding of the source, if its vocabulary differs from the target's."""
    source: str
    """The publication."""


def _fernandes(layers: int, d_model: int, num_heads: int, head_dim: int, vocab_size: int = 128_000) -> Preset:
    config = ModelConfig(
        decoder_layers=layers,
        d_model=d_model,
        num_heads=num_heads,
        head_dim=head_dim,
        d_ff=4 * d_model,
    )
    return Preset(config=config, vocab_size=vocab_size, source="Fernandes et al. 2023, Table A")


FERNANDES = {
    "fernandes-l2-d512": _fernandes(2, 512, 8, 64),
    "fernandes-l3-d768": _fernandes(3, 768, 12, 64),
    "fernandes-l6-d768": _fernandes(6, 768, 12, 64),
    "fernandes-l9-d768": _fernandes(9, 768, 12, 64),
    "fernandes-l9-d1024": _fernandes(9, 1024, 16, 64),
    "fernandes-l12-d1024": _fernandes(12, 1024, 16, 64),
    # Only 128,128 words give the published number of parameters of this row.
    "fernandes-l12-d1280": _fernandes(12, 1280, 16, 80, vocab_size=128_128),
    "fernandes-l12-d1536": _fernandes(12, 1536, 16, 96),
}


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


PUBLISHED_BILLIONS = {
    (128, 12): 12.5,
    (128, 36): 37,
    (512, 12): 50,
    (512, 36): 150,
    (2048, 12): 200,
    (2048, 36): 600,
}
"""{(experts, layers of both stacks): weights in billions, as published}."""


def _gshard(num_experts: int, layers: int, billions: float) -> Preset:
    dense = M4["m4-t96l"]
    config = replace(dense.config, num_experts=num_experts, decoder_layers=layers // 2, head_dim=128)
    source = f"GShard, MoE({num_experts}E, {layers}L): {billions:g}B weights, 100 languages to English"
    return replace(dense, config=config, source=source)


GSHARD = {
    f"gshard-e{num_experts}-l{layers}": _gshard(num_experts, layers, billions)
    for (num_experts, layers), billions in PUBLISHED_BILLIONS.items()
}


MAX_LAYERS = 26

_LANGUAGE_MODELS = "|".join(name for name in ARCHITECTURES if name != "encdec")

ZHANG_FAMILIES = (
    f"zhang-(base|big)-l(1 to {MAX_LAYERS})-encdec[-prenorm]",
    f"zhang-(base|big)-l(1 to {MAX_LAYERS})-({_LANGUAGE_MODELS})-(deep|wide)[-prenorm]",
)
"""Patterns of the names."""

_BASE = ModelConfig(d_model=512, num_heads=8, d_ff=2048, **VASWANI)
_WIDTHS = {"base": _BASE, "big": replace(_BASE, d_model=1024, num_heads=16, d_ff=4096)}

_NAME = re.compile(
    r"zhang-(?P<width>base|big)-l(?P<layers>\d{1,2})-"
    rf"(?P<architecture>{'|'.join(sorted(ARCHITECTURES, key=len, reverse=True))})"
    r"(-(?P<grown>deep|wide))?(?P<prenorm>-prenorm)?"
)


def zhang_preset(name: str) -> Preset | None:
    """Return the model called `name`, or None."""
    match = _NAME.fullmatch(name)
    if not match or not 1 <= int(match["layers"]) <= MAX_LAYERS:
        return None
    architecture = cast(Architecture, match["architecture"])
    if (architecture == "encdec") != (match["grown"] is None):
        return None
    encdec = replace(
        _WIDTHS[match["width"]],
        decoder_layers=int(match["layers"]),
        norm_order="pre" if match["prenorm"] else "post",
    )
    grow = {"deep": deepen, "wide": widen}.get(match["grown"] or "")
    return Preset(
        config=grow(encdec, architecture) if grow else encdec,
        vocab_size=32_000,
        source="Zhang et al. 2022, Sec. 4 and 5",
    )


def widen(encdec: ModelConfig, architecture: Architecture) -> ModelConfig:
    """Return the language model with the same layers and 3 d_ff: 4d² + 24d² = 28d², as a pair of layers."""
    return replace(encdec, architecture=architecture, encoder_layers=None, d_ff=3 * encdec.d_ff)


def deepen(encdec: ModelConfig, architecture: Architecture) -> ModelConfig:
    """Return the language model with the same widths and the nearest N, to within half a layer.

    A layer has 12d², a pair of encoder and decoder layers 28d²: 7/3 layers for a pair.
    """
    model = replace(encdec, architecture=architecture, encoder_layers=None, decoder_layers=1)
    one, two = _size(model), _size(replace(model, decoder_layers=2))
    return replace(model, decoder_layers=1 + max(0, round((_size(encdec) - one) / (two - one))))


def _size(config: ModelConfig) -> int:
    return count_parameters(config, 1).size


PRESETS: dict[str, Preset] = {**FERNANDES, **GSHARD, **M4}
"""Presets with fixed names."""

PRESET_NAMES = (*PRESETS, *ZHANG_FAMILIES)
"""All names, and the patterns of the names of Zhang et al."""


def preset(name: str) -> Preset:
    """Return the model called `name`.

    Raises:
        RunError: If there is no such preset; the message lists all names.
    """
    result = PRESETS.get(name) or zhang_preset(name)
    if result is None:
        raise RunError(f"there is no preset {name!r}; the presets are {', '.join(PRESET_NAMES)}")
    return result
