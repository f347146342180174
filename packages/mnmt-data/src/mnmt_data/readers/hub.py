"""Data sets that Hugging Face's library downloads by name."""

from __future__ import annotations

import re
from pathlib import Path

from mnmt_data.errors import DataError, missing_extra
from mnmt_data.readers.byte_sources import one_line
from mnmt_data.readers.saved_dataset import DatasetPairs

HUB = "hf:"
"""Prefix of the name of a data set, which tells it from a file."""

_NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:/([\w.-]+))?:(\w+)")


def open_hub_dataset(source: str, task: str) -> DatasetPairs:
    """Open a reader of a data set `hf:OWNER/NAME/CONFIG:SPLIT`; download it the first time.

    Args:
        source: Its name, such as `hf:Helsinki-NLP/opus-100/de-en:train`; `/CONFIG` is optional.
        task: The language pair.

    Raises:
        DataError: If the name is of another form, the library `datasets` is missing, or it cannot give the
            data set.
    """
    match = _NAME.fullmatch(source)
    if match is None:
        raise DataError(f"{source}: must be hf:OWNER/NAME/CONFIG:SPLIT, or hf:OWNER/NAME:SPLIT.")
    try:
        from datasets import load_dataset
        from datasets.exceptions import DatasetsError
    except ImportError:
        raise DataError(f"{source}: {missing_extra('huggingface')}.") from None
    name, config, split = match.groups()
    try:
        dataset = load_dataset(name, config, split=split)
    except (OSError, ValueError, DatasetsError) as error:
        raise DataError(
            f"{source}: cannot be had ({one_line(error)}); see to its name and the network."
        ) from None
    if not (files := dataset.cache_files):
        raise DataError(f"{source}: is held in memory; let the library keep it on disk.")
    return DatasetPairs(Path(source), task, tuple(Path(file["filename"]) for file in files))
