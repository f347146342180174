"""Names of T5's weights: ours and Hugging Face's."""

from __future__ import annotations

import re

_TOP = {
    "embedding.weight": "shared.weight",
    "softmax.weight": "lm_head.weight",
    "encoder.position_bias.weight": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "encoder.norm.weight": "encoder.final_layer_norm.weight",
    "decoder.position_bias.weight": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "decoder.norm.weight": "decoder.final_layer_norm.weight",
}
_TOP_OURS = {theirs: ours for ours, theirs in _TOP.items()}

_SUBLAYERS = {
    "encoder": (("attention", "SelfAttention"), ("feed_forward", "DenseReluDense")),
    "decoder": (
        ("attention", "SelfAttention"),
        ("cross_attention", "EncDecAttention"),
        ("feed_forward", "DenseReluDense"),
    ),
}
"""{stack: (our sublayer, theirs), in their order}."""

_NORMS = {
    "attention": "attention_norm",
    "cross_attention": "cross_norm",
    "feed_forward": "feed_forward_norm",
}


def hugging_face_name(name: str) -> str:
    """Hugging Face's name of our weight `name`."""
    if name in _TOP:
        return _TOP[name]
    stack, _, layer, part, rest = name.split(".", 4)
    for place, (ours, theirs) in enumerate(_SUBLAYERS[stack]):
        if part in (ours, _NORMS[ours]):
            sublayer = theirs if part == ours else "layer_norm"
            return f"{stack}.block.{layer}.layer.{place}.{sublayer}.{rest}"
    raise KeyError(name)


def our_name(name: str) -> str | None:
    """Our name of Hugging Face's weight `name`; None if T5 1.1 has no such weight."""
    if name in _TOP_OURS:
        return _TOP_OURS[name]
    match = re.fullmatch(r"(encoder|decoder)\.block\.(\d+)\.layer\.(\d+)\.(\w+)\.(.+)", name)
    if match is None:
        return None
    stack, layer, place, sublayer, rest = match.groups()
    for number, (ours, theirs) in enumerate(_SUBLAYERS[stack]):
        if number == int(place) and sublayer in (theirs, "layer_norm"):
            return f"{stack}.layers.{layer}.{ours if sublayer == theirs else _NORMS[ours]}.{rest}"
    return None
