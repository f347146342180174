"""Search for the best translations under a model."""

from mnmt_eval.search.beam import beam_search
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.length import LengthPenalty, MaxLength
from mnmt_eval.search.one_best import search

__all__ = [
    "Hypothesis",
    "LengthPenalty",
    "MaxLength",
    "SearchConfig",
    "beam_search",
    "greedy_search",
    "search",
]
