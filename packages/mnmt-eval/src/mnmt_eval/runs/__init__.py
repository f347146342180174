"""Trained runs: their test sets, translations and scores."""

from mnmt_eval.runs.run_scores import RunScores, read_run_scores
from mnmt_eval.runs.score import ScoreConfig, TextScores, score_run
from mnmt_eval.runs.texts import ReferenceText, read_testsets
from mnmt_eval.runs.trained_run import TrainedRun, open_run
from mnmt_eval.runs.translator import RunTranslator, open_translator

__all__ = [
    "ReferenceText",
    "RunScores",
    "RunTranslator",
    "ScoreConfig",
    "TextScores",
    "TrainedRun",
    "open_run",
    "open_translator",
    "read_run_scores",
    "read_testsets",
    "score_run",
]
