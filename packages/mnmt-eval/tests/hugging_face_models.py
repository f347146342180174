"""Small random models of transformers whose targets end at different lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

VOCAB = 60
SIZES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
SIZES |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
T5_SIZES = {"d_model": 32, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_kv": 16, "d_ff": 48}


def marian(**options: Any) -> Any:
    from transformers import MarianConfig, MarianMTModel

    pad = options.get("vocab_size", VOCAB) - 1
    special = {
        "pad_token_id": pad,
        "eos_token_id": 0,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": 0,
    }
    return MarianMTModel(MarianConfig(**{"vocab_size": VOCAB, **SIZES, **special, **options}))


def m2m_100(**options: Any) -> Any:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    return M2M100ForConditionalGeneration(M2M100Config(**{"vocab_size": VOCAB, **SIZES, **options}))


def mbart(**options: Any) -> Any:
    from transformers import MBartConfig, MBartForConditionalGeneration

    start = {"decoder_start_token_id": 2}
    return MBartForConditionalGeneration(MBartConfig(**{"vocab_size": VOCAB, **SIZES, **start, **options}))


def bart(**options: Any) -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(BartConfig(**{"vocab_size": VOCAB, **SIZES, **options}))


def t5(**options: Any) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    special = {"decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu"}
    return T5ForConditionalGeneration(T5Config(**{"vocab_size": VOCAB, **T5_SIZES, **special, **options}))


MODELS: dict[str, Callable[..., Any]] = {
    "marian": marian,
    "m2m_100": m2m_100,
    "mbart": mbart,
    "bart": bart,
    "t5": t5,
}


SEEDS = {"marian": 10, "m2m_100": 0, "mbart": 7, "bart": 26, "t5": 15}
"""Seeds of models whose targets differ much."""


def random_model(name: str, **options: Any) -> Any:
    """A model whose probabilities are so unequal that rounding decides nothing."""
    torch.manual_seed(SEEDS[name])
    model = MODELS[name](**{"tie_word_embeddings": False, **options}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape)
        output = model.get_output_embeddings().weight
        output *= 2
        end = output[_frequent_token(model)].clone()
        output[model.config.eos_token_id] = end + 0.2 * torch.randn(end.shape)
    return model


def _frequent_token(model: Any) -> int:
    """The token that targets have most after their third: where it was likely, they end."""
    sources = torch.arange(4, 24).view(4, 5)
    targets = model.generate(sources, min_new_tokens=12, max_new_tokens=12, do_sample=False, num_beams=1)
    return int(targets[:, 4:].flatten().bincount().argmax())
