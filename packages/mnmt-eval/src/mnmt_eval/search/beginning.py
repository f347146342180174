"""What targets begin with before anything is searched."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import EOS, PAD, State, TranslationModel


def beginnings(src: Tensor, prefix: Tensor | None) -> Tensor:
    """`(batch, 1 + prefix_len)` the token every target starts from, and those forced after it.

    Args:
        src: `(batch, src_len)` token ids.
        prefix: `(batch, prefix_len)` token ids, if any are forced.

    Raises:
        EvalError: If `prefix` is of another batch, or has padding or an end in it.
    """
    if prefix is None:
        return src.new_full((len(src), 1), PAD)
    if prefix.dim() != 2 or len(prefix) != len(src):
        raise EvalError(
            f"`prefix` must be (batch, prefix_len) with a batch of {len(src)}, but is {tuple(prefix.shape)}."
        )
    if ((prefix == PAD) | (prefix == EOS)).any():
        raise EvalError(f"`prefix` must have neither padding ({PAD}) nor `</s>` ({EOS}) in it, but has.")
    return F.pad(prefix, (1, 0), value=PAD)


def begin(model: TranslationModel[State], src: Tensor, begun: Tensor) -> State:
    """The state before the last token of `begun (batch, n)`."""
    state = model.encode(src, src == PAD)
    for tokens in begun[:, :-1].unbind(1):
        _, state = model.step(state, tokens)
    return state
