"""Every format that parallel text is kept in, behind one interface: blocks of sentence pairs."""

from mnmt_data.readers.open import find_readers, open_reader
from mnmt_data.readers.reader import Reader

__all__ = ["Reader", "find_readers", "open_reader"]
