"""Cross-entropy of translations."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import PAD, EncoderDecoder


def shift_right(tgt: Tensor) -> Tensor:
    """Decoder input of `tgt (batch, tgt_len)`: the start token 0, then all but the last token."""
    return F.pad(tgt[:, :-1], (1, 0), value=PAD)


def total_loss(model: EncoderDecoder, src: Tensor, tgt: Tensor) -> Tensor:
    """-log p(target | source), summed over the batch's target tokens, padding left out, in nats."""
    logits = model(src, shift_right(tgt))
    return F.cross_entropy(logits.flatten(0, 1).float(), tgt.flatten(), ignore_index=PAD, reduction="sum")


def pair_losses(model: EncoderDecoder, src: Tensor, tgt: Tensor) -> Tensor:
    """-log p(target | source) of each pair, `(batch,)`, in nats."""
    logits = model(src, shift_right(tgt)).flatten(0, 1).float()
    token_losses = F.cross_entropy(logits, tgt.flatten(), ignore_index=PAD, reduction="none")
    return torch.sum(token_losses.view(tgt.shape), dim=1)
