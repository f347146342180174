"""Search for translations under any model that scores the next token."""

from mnmt_eval.search.beam import beam_search, flat_beam_search
from mnmt_eval.search.config import LengthPenalty, MaxLength, SamplingConfig, SearchConfig
from mnmt_eval.search.dispatch import search
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.protocol import EOS, PAD, FlatSearchModel, SearchModel
from mnmt_eval.search.sampling import sample

__all__ = [
    "EOS",
    "PAD",
    "FlatSearchModel",
    "Hypothesis",
    "LengthPenalty",
    "MaxLength",
    "SamplingConfig",
    "SearchConfig",
    "SearchModel",
    "beam_search",
    "flat_beam_search",
    "greedy_search",
    "sample",
    "search",
]
