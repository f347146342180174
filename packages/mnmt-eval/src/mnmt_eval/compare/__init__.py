"""Systems side by side on one text, with intervals, tests of all pairs, ranks and groups of sentences."""

from mnmt_eval.compare.comparison import Comparison, GroupScore, compare_systems
from mnmt_eval.compare.config import CompareConfig
from mnmt_eval.compare.groups import group_rows, length_eighths, length_groups, length_thirds, origin_groups
from mnmt_eval.compare.ranking import Rank, rank_systems
from mnmt_eval.compare.systems import System, TranslatedText, name_systems, open_systems

__all__ = [
    "CompareConfig",
    "Comparison",
    "GroupScore",
    "Rank",
    "System",
    "TranslatedText",
    "compare_systems",
    "group_rows",
    "length_eighths",
    "length_groups",
    "length_thirds",
    "name_systems",
    "open_systems",
    "origin_groups",
    "rank_systems",
]
