"""Writing a fetched corpus folder: complete or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnmt_data.corpus import Bitext, write_bitext
from mnmt_data.errors import DataError


def code(language: str) -> str:
    """The corpus' code of a language: `zh` for `zh-CN`."""
    return language.replace("_", "-").split("-")[0].lower()


def check_codes(languages: tuple[str, ...]) -> None:
    """Refuses two variants of one language, which would share a code.

    Raises:
        DataError: naming the two.
    """
    seen: dict[str, str] = {}
    for language in languages:
        if code(language) in seen:
            both = f"{seen[code(language)]} and {language}"
            raise DataError(f"--langs: {both} would share the code {code(language)}; take one of them.")
        seen[code(language)] = language


def publish(folder: Path, testset: str, bitexts: Mapping[str, Bitext], provenance: Mapping[str, Any]) -> None:
    """Writes the pairs of each task as `testset` into `folder`, with a corpus.json, in place of earlier ones.

    Raises:
        DataError: if `folder` holds something else, which must not be lost.
    """
    if folder.exists() and not (folder / "corpus.json").is_file():
        raise DataError(f"{folder}: holds other files; name a new folder.")
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for task, bitext in bitexts.items():
        write_bitext(partial, testset, task, bitext)
    description = {
        "schema": 1,
        "provenance": dict(provenance),
        "counts": {f"{testset}.{task}": len(bitext) for task, bitext in bitexts.items()},
        "sha256": {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(partial.iterdir())},
    }
    (partial / "corpus.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
