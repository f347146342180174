"""From a study's text to prepared data, in stages: clean, split, train the vocabulary, encode, describe.

Text goes through in blocks and several processes, so that memory does not grow with it. Every stage leaves
whole files behind and takes those it finds for done, so that a stopped `prepare` goes on where it was.
"""

from mnmt_data.prepare.config import DataConfig, VocabConfig
from mnmt_data.prepare.pipeline import prepare_study

__all__ = ["DataConfig", "VocabConfig", "prepare_study"]
