"""Search for the best translations under a model."""

from mnmt_eval.search.beam import beam_search, flat_beam_search
from mnmt_eval.search.config import LengthPenalty, MaxLength, Sampling, SearchConfig
from mnmt_eval.search.dispatch import search
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.sampling import sample

__all__ = [
    "Hypothesis",
    "LengthPenalty",
    "MaxLength",
    "Sampling",
    "SearchConfig",
    "beam_search",
    "flat_beam_search",
    "greedy_search",
    "sample",
    "search",
]
