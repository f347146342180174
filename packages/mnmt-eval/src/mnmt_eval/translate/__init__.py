"""Translating text: any model that can be searched, any vocabulary, lines back in their order."""

from mnmt_eval.translate.translation import Candidate, Translation
from mnmt_eval.translate.translator import WINDOW_LINES, OnLines, Translator, translate
from mnmt_eval.translate.window import BATCH_TOKENS, Line

__all__ = [
    "BATCH_TOKENS",
    "WINDOW_LINES",
    "Candidate",
    "Line",
    "OnLines",
    "Translation",
    "Translator",
    "translate",
]
