"""The fingerprint of prepared data: a hash of the settings and of the contents of all inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from mnmt_data.errors import DataError, folder_holds
from mnmt_data.prepare.checksums import ChecksumCache
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.vocabulary_sample import check_vocabulary
from mnmt_data.synthetic import SyntheticConfig

NEWER: Mapping[str, Mapping[str, Any]] = {
    "clean": {"language_id_model": None},
    "synthetic": {"kind": "lexicon", "exact_test": False, "zipf_exponents": {}},
}
"""{table: {setting added later: its neutral value}}, left out of the hash at that value."""

REMOVED: Mapping[str, Mapping[str, Any]] = {
    "leaks": {"minhash": False, "similarity": 0.7, "dev": "apart"},
    "lexicon": {
        "max_words_per_sentence": None,
        "word_order": "same",
        "noise": 0.0,
        "copies": 0.0,
        "train_sentences_of": {},
    },
}
"""{table: {removed setting: its neutral value}}, still hashed, so that earlier data stay current.

Not so `dev`: dev sets of text that were prepared earlier may have near copies of test sentences."""

PAIRS_VERSION = 3
"""Version of the pairs that the same inputs give; it does not change with the format alone."""


def fingerprint_of(config: DataConfig, inputs: Inputs, checksums: ChecksumCache) -> str:
    """Return a hash of the settings and of the contents of all inputs.

    Raises:
        DataError: If a file in the settings is missing, or the vocabulary cannot be used again.
    """
    settings = _settings(config)
    check_vocabulary(config)
    if inputs.irreducible:
        # These do not affect synthetic text; without them its fingerprint is that of earlier versions.
        for name in ("leaks", "on_bad_line", "max_bad_share"):
            del settings[name]
    total = sha256(f"{PAIRS_VERSION} {json.dumps(settings, default=str, sort_keys=True)}".encode())
    digests = checksums.of(path for _, path in inputs.paths)
    for name, path in inputs.paths:
        total.update(f" {name} {path.name} {digests[path]}".encode())
    if config.vocab.path is not None:
        total.update(checksums.of([config.vocab.path])[config.vocab.path].encode())
    if (model := config.clean.language_id_model) is not None:
        if not model.is_file():
            raise DataError(
                f"[data.clean] `language_id_model`: {model}: no such file; {folder_holds(model)}."
            )
        total.update(checksums.of([model])[model].encode())
    return total.hexdigest()


def shuffled(fingerprint: str) -> str:
    """Return the fingerprint of the same data with large shards shuffled."""
    return sha256(f"{fingerprint} shuffled".encode()).hexdigest()


def _settings(config: DataConfig) -> dict[str, Any]:
    """Return the settings as the first version of the format had them."""
    settings = asdict(config)
    for name in ("scores", "columns"):
        if not settings[name]:
            del settings[name]
    settings["leaks"] |= REMOVED["leaks"]
    if isinstance(config.synthetic, SyntheticConfig):
        settings["synthetic"] |= REMOVED["lexicon"]
    for table, values in NEWER.items():
        for name, neutral in values.items():
            if settings[table] is not None and settings[table].get(name) == neutral:
                del settings[table][name]
    return settings
