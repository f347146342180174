"""Readers of every format of parallel text, which give blocks of sentence pairs."""

from mnmt_data.readers.open import find_readers, open_reader
from mnmt_data.readers.reader import Reader

__all__ = ["Reader", "find_readers", "open_reader"]
