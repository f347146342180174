"""Building a model from its config."""

from __future__ import annotations

import torch

from mnmt_model.transformer.encoder_decoder import EncoderDecoder
from mnmt_model.transformer.expert_ranks import ALONE, ExpertRanks
from mnmt_model.transformer.language_model import LanguageModel
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel


def build_model(
    config: ModelConfig,
    vocab_size: int,
    *,
    src_vocab_size: int | None = None,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float32,
    ranks: ExpertRanks = ALONE,
) -> TranslationModel:
    """The model that `config` describes, its weights not yet drawn (see `initialise`).

    Args:
        config: Architecture, widths and parts.
        vocab_size: Tokens of the vocabulary.
        src_vocab_size: Tokens of the source's, where it has an embedding of its own.
        dropout: Rate in embeddings, attention, feed-forward, sublayer outputs and the last norms.
        dtype: Of the states; weights are float32.
        ranks: The processes that hold its experts, if it has any.
    """
    kind = LanguageModel if config.is_language_model else EncoderDecoder
    return kind(config, vocab_size, src_vocab_size=src_vocab_size, dropout=dropout, dtype=dtype, ranks=ranks)
