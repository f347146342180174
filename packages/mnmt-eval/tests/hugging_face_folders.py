"""Folders of small random models of transformers with their tokenizers, as their users have them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch

WORDS = ("the", "old", "house", "tree", "stands", "green", "and", "river", "small", "long", "under", "blue")
LINES = [" ".join(WORDS[(i * k) % 12] for k in range(2, 3 + i % 9)) + "." for i in range(1, 200)]
POSITIONS = {"max_position_embeddings": 64}
NORMALIZED = {"normalize_before": True, "normalize_embedding": True, **POSITIONS}
"""What CTranslate2's converter reads of mBART's configuration."""


VOCAB = 60
SIZES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
SIZES |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
T5_SIZES = {"d_model": 32, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_kv": 16, "d_ff": 48}


def marian_model(**options: Any) -> Any:
    from transformers import MarianConfig, MarianMTModel

    pad = options.get("vocab_size", VOCAB) - 1
    special = {
        "pad_token_id": pad,
        "eos_token_id": 0,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": 0,
    }
    return MarianMTModel(MarianConfig(**{"vocab_size": VOCAB, **SIZES, **special, **options}))


def m2m_100_model(**options: Any) -> Any:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    return M2M100ForConditionalGeneration(M2M100Config(**{"vocab_size": VOCAB, **SIZES, **options}))


def mbart_model(**options: Any) -> Any:
    from transformers import MBartConfig, MBartForConditionalGeneration

    start = {"decoder_start_token_id": 2}
    return MBartForConditionalGeneration(MBartConfig(**{"vocab_size": VOCAB, **SIZES, **start, **options}))


def t5_model(**options: Any) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    special = {"decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu"}
    return T5ForConditionalGeneration(T5Config(**{"vocab_size": VOCAB, **T5_SIZES, **special, **options}))


MODELS: dict[str, Callable[..., Any]] = {
    "marian": marian_model,
    "m2m_100": m2m_100_model,
    "mbart": mbart_model,
    "t5": t5_model,
}


SEEDS = {"marian": 10, "m2m_100": 0, "mbart": 7, "t5": 15}
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


def sentencepiece_model(folder: Path, **options: Any) -> Path:
    """Train a small SentencePiece model."""
    path = folder / "trained.model"
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES),
            model_writer=file,
            vocab_size=48,
            hard_vocab_limit=False,
            minloglevel=2,
            **options,
        )
    return path


def pieces_of(path: Path) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())][3:]


def marian(folder: Path) -> Any:
    from transformers import MarianTokenizer

    path = sentencepiece_model(folder)
    tokens = ["</s>", "<unk>", *pieces_of(path), ">>deu<<", ">>fra<<", "<pad>"]
    vocab = folder / "tokens.json"
    vocab.write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = MarianTokenizer(str(path), str(path), str(vocab))
    model = random_model("marian", vocab_size=len(tokens), **POSITIONS)
    with torch.no_grad():  # as in models that are converted from Marian
        model.model.shared.weight[-1] = 0.0
        model.final_logits_bias[0, -1] = -1e4
    return tokenizer, model


def nllb(folder: Path) -> Any:
    from transformers import NllbTokenizerFast

    tokenizer = NllbTokenizerFast(str(sentencepiece_model(folder)))
    return tokenizer, random_model("m2m_100", vocab_size=len(tokenizer), **POSITIONS)


def mbart_50(folder: Path) -> Any:
    from transformers import MBart50TokenizerFast

    tokenizer = MBart50TokenizerFast(str(sentencepiece_model(folder)), bos_token="<s>")
    options = {"tokenizer_class": "MBart50Tokenizer", **NORMALIZED}
    return tokenizer, random_model("mbart", vocab_size=len(tokenizer), **options)


def mbart_25(folder: Path) -> Any:
    from transformers import MBartTokenizerFast

    tokenizer = MBartTokenizerFast(str(sentencepiece_model(folder)))
    return tokenizer, random_model("mbart", vocab_size=len(tokenizer), **NORMALIZED)


def t5(folder: Path) -> Any:
    from transformers import T5Tokenizer

    path = sentencepiece_model(folder, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = T5Tokenizer(str(path), extra_ids=4, legacy=False)
    prefixes = {"translation_en_to_de": {"prefix": "the house to: "}}
    model = random_model("t5", vocab_size=len(tokenizer), task_specific_params=prefixes)
    with torch.no_grad():  # else CTranslate2, which may not forbid padding after the softmax, would expect it
        model.lm_head.weight[0] = 0.0
    return tokenizer, model


FOLDERS: dict[str, Callable[[Path], Any]] = {
    "marian": marian,
    "nllb": nllb,
    "mbart_50": mbart_50,
    "mbart_25": mbart_25,
    "t5": t5,
}


def write_folder(name: str, folder: Path) -> Path:
    """Write a model and its tokenizer to `folder/NAME`, and to `ctranslate2` in it for CTranslate2."""
    from ctranslate2.converters import TransformersConverter

    tokenizer, model = FOLDERS[name](folder)
    tokenizer.save_pretrained(folder / name)
    # transformers leaves out tensors that share memory, and would draw them anew.
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    model.save_pretrained(folder / name, state_dict=weights)
    TransformersConverter(str(folder / name)).convert(str(folder / name / "ctranslate2"))
    return folder / name
