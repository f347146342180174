"""Folders that Hugging Face's `T5ForConditionalGeneration` loads: written and read without transformers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnmt_data.store import write_json
from mnmt_model import jsonl
from mnmt_model.errors import RunError
from mnmt_model.export.t5_layout import hugging_face_name, model_config, our_name, t5_config
from mnmt_model.export.tokenizer import read_sentencepiece, tokenizer, tokenizer_config
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.model_config import ModelConfig

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SENTENCEPIECE = "spiece.model"

MAX_NEW_TOKENS = 256
"""Where a translation is cut off; transformers' own default is 20."""

_UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""A weight that some old checkpoints hold and no model reads."""

_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""Other names that checkpoints have of the shared embedding."""


def export_hugging_face(
    config: ModelConfig, weights: Mapping[str, Tensor], vocabulary: Path, out: Path
) -> None:
    """Write a model as a folder for `T5ForConditionalGeneration` and `AutoTokenizer`.

    Args:
        config: Of an encoder-decoder with T5's parts.
        weights: {our name: weight}, its state dict.
        vocabulary: Its SentencePiece model.
        out: Folder to write into, made if it is missing.

    Raises:
        RunError: If the model is not a T5 1.1, or the vocabulary is missing or not of its size.
    """
    vocab_size = len(weights["embedding.weight"])
    dtype = str(weights["embedding.weight"].dtype).removeprefix("torch.")
    described = t5_config(config, vocab_size, dtype=dtype)
    proto = read_sentencepiece(vocabulary)
    if len(proto.pieces) != vocab_size:
        raise RunError(f"{vocabulary}: has {len(proto.pieces)} tokens, but the model {vocab_size}")
    out.mkdir(parents=True, exist_ok=True)
    renamed = {hugging_face_name(name): weight.contiguous() for name, weight in weights.items()}
    save_file(renamed, out / WEIGHTS, metadata={"format": "pt"})
    shutil.copyfile(vocabulary, out / SENTENCEPIECE)
    write_json(out / "tokenizer.json", tokenizer(proto))
    write_json(out / "tokenizer_config.json", tokenizer_config(proto))
    write_json(out / "generation_config.json", _generation(described))
    write_json(out / CONFIG, described)


def read_hugging_face(folder: Path) -> tuple[ModelConfig, int, dict[str, Tensor]]:
    """Read a T5 1.1 from a folder of Hugging Face's.

    Args:
        folder: Config.json with model.safetensors, or with an index of several such files.

    Returns:
        Its config, the size of its vocabulary, and {our name: weight}, in float32.

    Raises:
        RunError: If a file is missing or broken, or the model is not one of ours.
    """
    content = jsonl.read_json(folder / CONFIG)
    config, vocab_size = model_config(folder / CONFIG, content)
    found: dict[str, Tensor] = {}
    copies: dict[str, Tensor] = {}
    for path, name, weight in _tensors(folder):
        ours = our_name(name)
        if ours is not None:
            found[ours] = weight.float()
        elif name in _COPIES:
            copies[name] = weight.float()
        elif name != _UNUSED:
            raise RunError(f"{path}: holds {name}, which a T5 1.1 does not have")
    if content.get("tie_word_embeddings", True) and "embedding.weight" in found:
        # Unscaled, as `model_config` has seen: transformers 5 makes such models, and saves the matrix once.
        found.setdefault("softmax.weight", found["embedding.weight"].clone())
    _check_weights(folder, config, vocab_size, found)
    for name, weight in copies.items():
        if not torch.equal(weight, found["embedding.weight"]):
            raise RunError(
                f"{folder}: {name} differs from shared.weight, but both sides must share an embedding"
            )
    return config, vocab_size, found


def _generation(described: Mapping[str, Any]) -> dict[str, Any]:
    special = {name: described[name] for name in ("decoder_start_token_id", "eos_token_id", "pad_token_id")}
    # transformers makes a cache of as many layers as the encoder has, and fails where the decoder has more.
    use_cache = described["num_decoder_layers"] <= described["num_layers"]
    return {**special, "max_new_tokens": MAX_NEW_TOKENS, "use_cache": use_cache}


def _tensors(folder: Path) -> Iterator[tuple[Path, str, Tensor]]:
    """`(file, Hugging Face's name, weight)` of all files, one weight after the other."""
    for path in _weight_files(folder):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - the file is no mapping
                    yield path, name, file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise RunError(f"{path}: cannot be read ({error})") from None


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise RunError(f"{folder}: must hold {WEIGHTS} or {INDEX}; save the model with `save_pretrained`")
    index = jsonl.read_json(folder / INDEX)
    if not isinstance(index, dict) or not isinstance(index.get("weight_map"), dict):
        raise RunError(f"{folder / INDEX}: must have a `weight_map`")
    return [folder / Path(name).name for name in sorted(set(index["weight_map"].values()))]


def _check_weights(folder: Path, config: ModelConfig, vocab_size: int, found: Mapping[str, Tensor]) -> None:
    """Every weight of the model that config.json describes is there, in its shape, and no other."""
    with torch.device("meta"):
        expected = build_model(config, vocab_size).state_dict()
    for name, weight in expected.items():
        if name not in found:
            raise RunError(f"{folder}: lacks {hugging_face_name(name)}")
        if found[name].shape != weight.shape:
            shapes = f"must be {tuple(weight.shape)}, but is {tuple(found[name].shape)}"
            raise RunError(f"{folder}: {hugging_face_name(name)} {shapes}")
    if unknown := sorted(found.keys() - expected.keys()):
        raise RunError(
            f"{folder}: holds {hugging_face_name(unknown[0])}, which config.json does not describe"
        )
