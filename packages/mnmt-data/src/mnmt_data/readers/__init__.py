"""Readers of every format of parallel text, which give blocks of sentence pairs."""

from mnmt_data.readers.open import find_readers, open_reader
from mnmt_data.readers.plugins import PluginReader
from mnmt_data.readers.reader import BadLine, Block, Reader, blocks_of

__all__ = ["BadLine", "Block", "PluginReader", "Reader", "blocks_of", "find_readers", "open_reader"]
