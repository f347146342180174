"""Write and read folders of transformers without importing it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mnmt_data.store import read_json, write_json
from mnmt_model.errors import RunError
from mnmt_model.export.layouts import check_exportable, exported_weights, layout_of
from mnmt_model.export.t5_layout import hugging_face_name, model_config
from mnmt_model.export.tokenizer import read_sentencepiece, tokenizer, tokenizer_config
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.model_config import ModelConfig

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SENTENCEPIECE = "spiece.model"

MAX_NEW_TOKENS = 256
"""Length at which translations are truncated; the default of transformers is 20."""

_UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""An unused weight in some old checkpoints."""

_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""Other names of the shared embedding in checkpoints."""


def export_hugging_face(
    config: ModelConfig, weights: Mapping[str, Tensor], vocabulary: Path, out: Path
) -> None:
    """Write a model as a folder for `AutoModelForSeq2SeqLM` and `AutoTokenizer`.

    Args:
        config: The config of an exportable model.
        weights: The state dict, {our name: weight}.
        vocabulary: The SentencePiece model.
        out: Folder to write into; created if missing.

    Raises:
        RunError: If the model cannot be exported, or the vocabulary is missing or has another size.
    """
    vocab_size = len(weights["embedding.weight"])
    dtype = str(weights["embedding.weight"].dtype).removeprefix("torch.")
    check_exportable(config, weights)
    content = layout_of(config).json_config(config, vocab_size, dtype)
    tensors = exported_weights(config, weights)
    proto = read_sentencepiece(vocabulary)
    if len(proto.pieces) != vocab_size:
        raise RunError(f"{vocabulary}: has {len(proto.pieces)} tokens, but the model {vocab_size}")
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    shutil.copyfile(vocabulary, out / SENTENCEPIECE)
    write_json(out / "tokenizer.json", tokenizer(proto))
    write_json(out / "tokenizer_config.json", tokenizer_config(proto))
    write_json(out / "generation_config.json", _generation(content))
    write_json(out / CONFIG, content)


def read_hugging_face(folder: Path) -> tuple[ModelConfig, int, dict[str, Tensor]]:
    """Read a T5 1.1 from a Hugging Face folder.

    Args:
        folder: Folder with config.json and model.safetensors, or an index of several such files.

    Returns:
        The config, the size of the vocabulary, and {our name: weight} in float32.

    Raises:
        RunError: If a file is missing or broken, or the model is not a T5 1.1.
    """
    content = read_json(folder / CONFIG, error=RunError)
    config, vocab_size = model_config(folder / CONFIG, content)
    with torch.device("meta"):
        expected = build_model(config, vocab_size).state_dict()
    our_names = {hugging_face_name(name): name for name in expected}
    weights: dict[str, Tensor] = {}
    copies: dict[str, Tensor] = {}
    for path, name, weight in read_tensors(folder):
        if name in our_names:
            weights[our_names[name]] = weight.float()
        elif name in _COPIES:
            copies[name] = weight.float()
        elif name != _UNUSED:
            raise RunError(f"{path}: holds {name}, which config.json does not describe")
    if content.get("tie_word_embeddings", True) and "embedding.weight" in weights:
        # transformers 5 saves a tied matrix once; `model_config` has checked that logits are not scaled.
        weights.setdefault("softmax.weight", weights["embedding.weight"].clone())
    _check_shapes(folder, weights, expected)
    for name, weight in copies.items():
        if not torch.equal(weight, weights["embedding.weight"]):
            raise RunError(
                f"{folder}: {name} differs from shared.weight, but both sides must share an embedding"
            )
    return config, vocab_size, weights


def _generation(content: Mapping[str, Any]) -> dict[str, Any]:
    names = ("decoder_start_token_id", "eos_token_id", "pad_token_id", "use_cache")
    return {**{name: content[name] for name in names}, "max_new_tokens": MAX_NEW_TOKENS}


def read_tensors(folder: Path) -> Iterator[tuple[Path, str, Tensor]]:
    """Yield `(file, name in transformers, weight)` of all files, one weight at a time.

    Raises:
        RunError: If a file is missing or broken.
    """
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
    index = read_json(folder / INDEX, error=RunError)
    if not isinstance(index, dict) or not isinstance(index.get("weight_map"), dict):
        raise RunError(f"{folder / INDEX}: must have a `weight_map`")
    return [folder / Path(name).name for name in sorted(set(index["weight_map"].values()))]


def _check_shapes(folder: Path, weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    for name, weight in expected.items():
        if name not in weights:
            raise RunError(f"{folder}: lacks {hugging_face_name(name)}")
        if weights[name].shape != weight.shape:
            shapes = f"must be {tuple(weight.shape)}, but is {tuple(weights[name].shape)}"
            raise RunError(f"{folder}: {hugging_face_name(name)} {shapes}")
