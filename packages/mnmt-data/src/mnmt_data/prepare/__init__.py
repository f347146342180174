"""From a study's text to prepared data, in stages: clean, split, train the vocabulary, encode, describe.

Text is read in blocks by several processes, so that memory does not grow with it. Every stage leaves whole
files behind, and uses those of an earlier call, so that a stopped `prepare` continues where it was.
"""

from mnmt_data.prepare.config import DataConfig, VocabConfig
from mnmt_data.prepare.pipeline import prepare_study

__all__ = ["DataConfig", "VocabConfig", "prepare_study"]
