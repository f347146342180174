"""Corpora of made languages, written unless they are there as the settings would have them."""

from __future__ import annotations

import json
from pathlib import Path

from mnmt_data.prepare.digests import Digests
from mnmt_data.prepare.inputs import DESCRIPTION
from mnmt_data.study import structure
from mnmt_data.synthetic import SyntheticConfig, write_synthetic_corpus


def is_made(config: SyntheticConfig, folder: Path, digests: Digests) -> bool:
    """Whether the corpus in a folder is whole and was made with these settings."""
    try:
        stated = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        made = structure(stated["provenance"]["config"], SyntheticConfig, where="config")
        return made == config and all(
            digests.of(folder / name) == digest for name, digest in stated["sha256"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def make_corpus(config: SyntheticConfig, folder: Path) -> None:
    """Write the corpus; its description, without which it is not made, comes last."""
    (folder / DESCRIPTION).unlink(missing_ok=True)
    write_synthetic_corpus(config, folder)
