"""The files by which a folder is a model of Hugging Face or CTranslate2."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnmt_data.store import checksum

CTRANSLATE2 = "model.bin"
"""CTranslate2's file of weights."""


def is_model_folder(path: Path) -> bool:
    """Return whether a folder holds a model of Hugging Face or CTranslate2, and is none of our runs."""
    return ctranslate2_folder(path) is not None or is_hugging_face(path)


def ctranslate2_folder(folder: Path) -> Path | None:
    """Return the folder of CTranslate2's files, itself or its folder `ctranslate2`; None without."""
    candidates = (folder, folder / "ctranslate2")
    return next((each for each in candidates if (each / CTRANSLATE2).is_file()), None)


def is_hugging_face(folder: Path) -> bool:
    """Return whether a folder has a config.json of transformers."""
    return "model_type" in read_settings(folder)


def read_settings(folder: Path) -> Mapping[str, Any]:
    """Return the content of config.json; nothing if there is none."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def checksum_of(folder: Path) -> str:
    """Return a checksum of all files of a model, its tokenizer and its settings."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(f"{path.relative_to(folder)} {checksum(path)}\n".encode())
    return digest.hexdigest()
