"""Systems side by side on one text, with intervals, significance and groups of sentences."""

from mnmt_eval.compare.comparison import CompareConfig, Comparison, compare_systems
from mnmt_eval.compare.groups import GroupScore, length_groups, length_thirds, origin_groups, score_groups
from mnmt_eval.compare.systems import System, TranslatedText, name_systems, open_systems

__all__ = [
    "CompareConfig",
    "Comparison",
    "GroupScore",
    "System",
    "TranslatedText",
    "compare_systems",
    "length_groups",
    "length_thirds",
    "name_systems",
    "open_systems",
    "origin_groups",
    "score_groups",
]
