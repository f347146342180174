"""Compare the greedy translations of an exported model with the preferences of the trained one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mnmt_model.export.engines import Ids, Translator
from mnmt_model.transformer.sentences import PAD
from mnmt_model.transformer.translation_model import TranslationModel

GAP_TOLERANCE = 1e-3
"""Largest accepted `GreedyTranslation.gap`, in nats: rounding decides between closer tokens."""


@dataclass(frozen=True, kw_only=True)
class GreedyTranslation:
    """A greedy translation by transformers, scored by our model."""

    location: str
    """File and line of the source."""
    tokens: int
    """Tokens of the translation, `</s>` included."""
    gap: float
    """Largest difference in nats between the most likely next token and the chosen one; 0 if our model's
    greedy translation is the same."""


def worst_translation(translations: Sequence[GreedyTranslation]) -> GreedyTranslation:
    """Return the translation with the largest gap, or NaN."""
    return max(translations, key=lambda each: np.nan_to_num(each.gap, nan=np.inf))


@torch.inference_mode()
def compare_greedy(
    model: TranslationModel, translate: Translator, src: Ids, locations: Sequence[str]
) -> list[GreedyTranslation]:
    """Return the greedy translations of sources, with the gaps of their tokens under our model.

    transformers decodes token by token, with cached keys and values and increasing positions. Our model
    computes all tokens at once. Neither may choose padding.

    Args:
        model: The trained model.
        translate: The exported model's greedy search.
        src: `(batch, src_len)` source ids, padded with 0.
        locations: File and line of each source.
    """
    tgt = torch.from_numpy(translate(src))
    logits = model.logits(torch.from_numpy(src), tgt)
    logits[:, :, PAD] = -torch.inf
    behind = logits.amax(2) - logits.gather(2, tgt[:, :, None]).squeeze(2)
    gaps = behind.masked_fill(tgt == PAD, 0.0).amax(1)
    lengths = (tgt != PAD).sum(1)
    return [
        GreedyTranslation(location=location, tokens=tokens, gap=gap)
        for location, tokens, gap in zip(locations, lengths.tolist(), gaps.tolist(), strict=True)
    ]
