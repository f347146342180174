"""Readers of every format of parallel text, which give blocks of sentence pairs."""

from mnmt_data.readers.columns import ScoreColumn
from mnmt_data.readers.open import find_readers, open_reader
from mnmt_data.readers.plugins import PluginReader
from mnmt_data.readers.reader import BadLine, Block, Reader, blocks_of
from mnmt_data.readers.scores import ScoredReader, with_scores

__all__ = [
    "BadLine",
    "Block",
    "PluginReader",
    "Reader",
    "ScoreColumn",
    "ScoredReader",
    "blocks_of",
    "find_readers",
    "open_reader",
    "with_scores",
]
