"""What a preset is."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.transformer.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A published model: its parts, and the vocabulary it was published with."""

    config: ModelConfig
    vocab_size: int
    """Rows of the embedding of the target and of the softmax."""
    src_vocab_size: int | None = None
    """Rows of the embedding of the source, where it has a vocabulary of its own."""
    source: str
    """Where it was published."""
