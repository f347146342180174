"""Readers of every format of parallel text, which give blocks of sentence pairs."""

from mnmt_data.readers.columns import ScoreColumn
from mnmt_data.readers.open import find_readers, open_reader
from mnmt_data.readers.reader import Block, Reader
from mnmt_data.readers.scores import ScoredReader, with_scores

__all__ = [
    "Block",
    "Reader",
    "ScoreColumn",
    "ScoredReader",
    "find_readers",
    "open_reader",
    "with_scores",
]
