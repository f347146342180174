"""Write folders of transformers without importing it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from mnmt_data.store import write_json
from mnmt_model.errors import RunError
from mnmt_model.export.layouts import check_exportable, exported_weights, layout_of
from mnmt_model.export.tokenizer import read_sentencepiece, tokenizer, tokenizer_config
from mnmt_model.transformer.model_config import ModelConfig

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SENTENCEPIECE = "spiece.model"

MAX_NEW_TOKENS = 256
"""Length at which translations are truncated; the default of transformers is 20."""


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


def _generation(content: Mapping[str, Any]) -> dict[str, Any]:
    names = ("decoder_start_token_id", "eos_token_id", "pad_token_id", "use_cache")
    return {**{name: content[name] for name in names}, "max_new_tokens": MAX_NEW_TOKENS}
