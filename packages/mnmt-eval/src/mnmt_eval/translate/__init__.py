"""Translation of text with any model that can be searched and any vocabulary."""

from mnmt_eval.translate.lines import Line, Vocabulary
from mnmt_eval.translate.translation import Candidate, Translation
from mnmt_eval.translate.translator import WINDOW_LINES, OnLines, Translator, translate
from mnmt_eval.translate.window import BATCH_TOKENS

__all__ = [
    "BATCH_TOKENS",
    "WINDOW_LINES",
    "Candidate",
    "Line",
    "OnLines",
    "Translation",
    "Translator",
    "Vocabulary",
    "translate",
]
