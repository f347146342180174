"""Search for the best translations under a model."""

from mnmt_eval.search.beam import beam_search
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.dispatch import search
from mnmt_eval.search.flat_beam import flat_beam_search
from mnmt_eval.search.greedy import greedy_search
from mnmt_eval.search.hypothesis import Hypothesis
from mnmt_eval.search.length import LengthPenalty, MaxLength
from mnmt_eval.search.sampling import sample
from mnmt_eval.search.sampling_config import Sampling

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
