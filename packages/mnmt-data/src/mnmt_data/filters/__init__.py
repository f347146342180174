"""Filters that a sentence pair must pass to be trained on, with names, counts and samples."""

from mnmt_data.filters.clean import CleanBlock, CleanConfig, Cleaner, clean_block
from mnmt_data.filters.duplicates import first_occurrences
from mnmt_data.filters.keys import Keys
from mnmt_data.filters.language_id import Library, language_scores
from mnmt_data.filters.leaks import LeakConfig, LeakFinder
from mnmt_data.filters.normalise import normalise
from mnmt_data.filters.report import DEV_OR_TEST, DUPLICATE, NEAR_DUPLICATE, FilterReport

__all__ = [
    "DEV_OR_TEST",
    "DUPLICATE",
    "NEAR_DUPLICATE",
    "CleanBlock",
    "CleanConfig",
    "Cleaner",
    "FilterReport",
    "Keys",
    "LeakConfig",
    "LeakFinder",
    "Library",
    "clean_block",
    "first_occurrences",
    "language_scores",
    "normalise",
]
