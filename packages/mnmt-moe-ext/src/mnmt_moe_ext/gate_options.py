"""The options of a gate, and their checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Required, TypedDict, get_args

import torch
from torch import Tensor

from mnmt_moe_ext.counter_rng import RandomKey

SecondExpertPolicy = Literal["always", "random"]
Renormalise = Literal["before", "after", "never"]

MAX_TOP_K = 8
FLOAT_DTYPES = (torch.float32, torch.bfloat16, torch.float64)
"""The dtypes of logits and of rows."""


class GateKeywords(TypedDict, total=False):
    """The options of `route`, by name."""

    top_k: int
    capacity: Required[int | None]
    bias: Tensor | None
    choices: Tensor | None
    second_expert_policy: SecondExpertPolicy
    random_key: RandomKey | None
    token_ids: Tensor | None
    threshold: float
    renormalise: Renormalise | None


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """The options of `route`; see its arguments."""

    top_k: int = 2
    capacity: int | None
    bias: Tensor | None = None
    choices: Tensor | None = None
    second_expert_policy: SecondExpertPolicy = "always"
    random_key: RandomKey | None = None
    token_ids: Tensor | None = None
    threshold: float = 0.5
    renormalise: Renormalise | None = None

    @property
    def normaliser(self) -> Renormalise:
        """The given `renormalise`; by default "before", and "never" for one choice.

        A choice's gate over itself is always 1, so that the gate would learn nothing.
        """
        default: Renormalise = "never" if self.top_k == 1 else "before"
        return default if self.renormalise is None else self.renormalise

    def check(self, logits: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Check the arguments of a gate, and return the mask of padding.

        Raises:
            TypeError: An argument has the wrong dtype.
            ValueError: An argument has the wrong shape, device or value.
        """
        _check_logits(logits)
        if padding_mask is None:
            padding_mask = torch.zeros(logits.shape[:2], dtype=torch.bool, device=logits.device)
        _check_tensor("padding_mask", padding_mask, torch.bool, logits, "(groups, tokens)", ())
        self._check_numbers(num_experts=logits.shape[2])
        _check_option("second_expert_policy", self.second_expert_policy, get_args(SecondExpertPolicy))
        _check_option("renormalise", self.normaliser, get_args(Renormalise))
        if self.bias is not None:
            _check_bias(self.bias, logits)
        if self.choices is not None:
            layout = f"(groups, tokens, {self.top_k})"
            _check_tensor("choices", self.choices, torch.int32, logits, layout, (self.top_k,))
        if self.token_ids is not None:
            _check_tensor("token_ids", self.token_ids, torch.int64, logits, "(groups, tokens)", ())
        if self.second_expert_policy == "random":
            self._check_draws(logits)
        return padding_mask

    def _check_numbers(self, num_experts: int) -> None:
        for name, number in (("top_k", self.top_k), ("capacity", self.capacity)):
            if not isinstance(number, int | torch.SymInt | None):
                raise TypeError(f"`{name}` must be a whole number, but is {number!r}.")
        if not 1 <= self.top_k <= MAX_TOP_K:
            raise ValueError(f"`top_k` must be in 1 to {MAX_TOP_K}, but is {self.top_k}.")
        if self.top_k > num_experts:
            raise ValueError(
                f"`top_k` must be at most the number of experts ({num_experts}), but is {self.top_k}."
            )
        if self.capacity is not None and self.capacity < 1:
            raise ValueError(f"`capacity` must be at least 1, or None, but is {self.capacity}.")
        if self.top_k == 1 and self.normaliser != "never":
            raise ValueError(
                '`renormalise` must be "never" with `top_k` 1, or the weight is always 1 and the gate learns '
                f'nothing, but is "{self.renormalise}".'
            )
        if not self.threshold > 0:
            raise ValueError(f"`threshold` must be positive, but is {self.threshold}.")

    def _check_draws(self, logits: Tensor) -> None:
        if self.top_k != 2:
            raise ValueError(f'`top_k` must be 2 with `second_expert_policy` "random", but is {self.top_k}.')
        if self.random_key is None:
            raise ValueError('`random_key` must be given with `second_expert_policy` "random".')
        _check_random_key(self.random_key, logits)


def number_tokens(token_ids: Tensor | None, padding_mask: Tensor) -> Tensor:
    """Return the given ids, or 0, 1, … through all groups, (groups, tokens) int64."""
    if token_ids is not None:
        return token_ids
    return torch.arange(padding_mask.numel(), device=padding_mask.device).view(padding_mask.shape)


def check_dtype(name: str, value: object, *dtypes: torch.dtype) -> None:
    """Refuse what is no tensor of one of these dtypes: one, or all of `FLOAT_DTYPES`.

    Raises:
        TypeError: It is none.
    """
    actual = value.dtype if isinstance(value, Tensor) else type(value).__name__
    if actual not in dtypes:
        expected = dtypes[0] if len(dtypes) == 1 else "float32, bfloat16 or float64"
        raise TypeError(f"`{name}` must be {expected}, but is {actual}.")


def _check_logits(logits: Tensor) -> None:
    check_dtype("logits", logits, *FLOAT_DTYPES)
    if logits.dim() != 3:
        raise ValueError(f"`logits` must be (groups, tokens, experts), but is {tuple(logits.shape)}.")
    if logits.shape[2] < 1:
        raise ValueError("`logits` must have at least 1 expert, but has 0.")


def _check_bias(bias: Tensor, logits: Tensor) -> None:
    check_dtype("bias", bias, torch.float32)
    if tuple(bias.shape) != (logits.shape[2],):
        raise ValueError(f"`bias` must be (experts,) = ({logits.shape[2]},), but is {tuple(bias.shape)}.")
    _check_device("bias", bias, logits)


def _check_random_key(random_key: RandomKey, logits: Tensor) -> None:
    seed_and_step = random_key.seed_and_step
    check_dtype("random_key.seed_and_step", seed_and_step, torch.int64)
    if tuple(seed_and_step.shape) != (2,):
        raise ValueError(f"`random_key.seed_and_step` must be (2,), but is {tuple(seed_and_step.shape)}.")
    _check_device("random_key.seed_and_step", seed_and_step, logits)
    if not 0 <= random_key.layer < 2**32:
        raise ValueError(f"`random_key.layer` must be in 0 to 2**32 - 1, but is {random_key.layer}.")


def _check_tensor(
    name: str, tensor: Tensor, dtype: torch.dtype, logits: Tensor, layout: str, after: tuple[int, ...]
) -> None:
    """Check a tensor with one value, or `after` values, for each token."""
    check_dtype(name, tensor, dtype)
    expected = (*logits.shape[:2], *after)
    if tuple(tensor.shape) != expected:
        raise ValueError(f"`{name}` must be {layout} = {expected}, but is {tuple(tensor.shape)}.")
    _check_device(name, tensor, logits)


def _check_device(name: str, tensor: Tensor, logits: Tensor) -> None:
    if tensor.device != logits.device:
        raise ValueError(f"`{name}` must be on {logits.device} like `logits`, but is on {tensor.device}.")


def _check_option(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        *others, last = (f'"{option}"' for option in options)
        raise ValueError(f'`{name}` must be {", ".join(others)} or {last}, but is "{value}".')
