"""The classes of transformers that models are exported to, by the experts that a token chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torch import Tensor

from mnmt_model.errors import RunError
from mnmt_model.export import nllb_moe_layout, switch_layout, t5_layout
from mnmt_model.transformer.model_config import ModelConfig


class Layout(Protocol):
    """The interface of a module about a class of transformers."""

    NAME: str
    NEEDED: Mapping[str, object]
    """{field of `ModelConfig`: its fixed value in the class}."""

    def also_needed(self, config: ModelConfig) -> Iterator[str]:
        """Yield further changes that a config needs to fit the class: `field = value`."""

    def json_config(self, config: ModelConfig, vocab_size: int, dtype: str = ...) -> dict[str, Any]:
        """Return the content of config.json."""

    def exported(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return {name in transformers: weight} of {our name: weight}."""


def layout_of(config: ModelConfig) -> Layout:
    """Return the layout for exporting models of a config, if they are exportable."""
    if not config.num_experts:
        return t5_layout
    return switch_layout if config.experts_per_token == 1 else nllb_moe_layout


def check_exportable(config: ModelConfig, weights: Mapping[str, Tensor] | None = None) -> None:
    """Check that a model computes the same as the class of its layout.

    Args:
        config: The model's config.
        weights: The state dict, {our name: weight}, to check that biases of gates, which no class has, are 0;
            by default only the config is checked.

    Raises:
        RunError: If it does not; the message names all keys to change.
    """
    layout = layout_of(config)
    fields = [
        f"{field} = {json.dumps(value)}"
        for field, value in layout.NEEDED.items()
        if getattr(config, field) != value
    ]
    fields += layout.also_needed(config)
    needed = [f"{', '.join(fields)} under [model]"] if fields else []
    if any(name.endswith(_BALANCE_BIAS) and weight.any() for name, weight in (weights or {}).items()):
        needed.append("balance_bias_rate = 0 under [train]")
    if needed:
        kind = "a mixture of experts" if config.num_experts else "a dense model"
        raise RunError(
            f"{kind} can be exported only in the layout of {layout.NAME}, which needs {' and '.join(needed)}"
        )


def exported_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return {name in transformers: weight}, without the biases of gates.

    Args:
        config: The config of a model.
        weights: The state dict, {our name: weight}; `check_exportable` accepts both.
    """
    rest = {name: weight for name, weight in weights.items() if not name.endswith(_BALANCE_BIAS)}
    return layout_of(config).exported(rest)


_BALANCE_BIAS = ".gate.balance_bias"


def check_convertible(config: ModelConfig) -> None:
    """Check that CTranslate2 can load the exported model.

    Raises:
        RunError: If the model is a mixture of experts, or not a T5 1.1.
    """
    if config.num_experts:
        raise RunError(f"CTranslate2 has no mixtures of experts, but `num_experts` is {config.num_experts}")
    check_exportable(config)
