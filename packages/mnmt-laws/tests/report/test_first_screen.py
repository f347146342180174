"""Advice and trust on the first screen."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from mnmt_laws import Perturbation
from mnmt_laws.report.advice import Trust, TrustRow
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.first_screen import make_advice, make_trust

Analyse = Callable[..., Analysis]


def test_advice_without_refits_is_undetermined(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    advice = make_advice(analyse_table(losses, uncertainty=Perturbation(refits=0)))
    assert not advice.determined
    assert "do not determine" in advice.headline
    assert "refit" in advice.reasons[0]


def test_a_doubt_leaves_advice_undetermined(loss_analysis: Analysis) -> None:
    assert loss_analysis.recommendation is not None
    clean = replace(loss_analysis.recommendation, doubts=())
    assert make_advice(replace(loss_analysis, recommendation=clean)).determined
    doubtful = replace(clean, doubts=("the refits disagree.",))
    advice = make_advice(replace(loss_analysis, recommendation=doubtful))
    assert not advice.determined
    assert "do not determine" in advice.headline
    assert advice.reasons[0] == "the refits disagree."


def test_advice_predicts_with_nested_intervals(loss_analysis: Analysis) -> None:
    shares = make_advice(loss_analysis).mixture
    assert sum(share.weight for share in shares) == pytest.approx(1)
    for share in shares:
        low, high = share.prediction_interval
        assert low < share.predicted < high


def test_next_runs_are_valid_in_a_study(loss_analysis: Analysis) -> None:
    advice = make_advice(loss_analysis)
    assert advice.next_runs is not None
    sweeps = [tomllib.loads(text)["sweep"] for text in advice.next_runs_toml]
    runs = [len(s["fit"]["sizes"]) * len(s["fit"]["mixtures"]) * len(s["seeds"]) for s in sweeps]
    assert sum(runs) == len(advice.next_runs.rows)


def test_trust_counts_signs_and_coverage(loss_analysis: Analysis) -> None:
    rows = {row.label: row for row in make_trust(loss_analysis).rows}
    assert rows["Their sign"].value == "7 of 8 above the prediction"
    assert rows["Prediction interval"].value.startswith("inside: ")


def test_one_sided_errors_are_bad(loss_analysis: Analysis) -> None:
    held_out = replace(loss_analysis.held_out, rows=loss_analysis.held_out.rows.assign(error=-0.01))
    rows = {row.label: row for row in make_trust(replace(loss_analysis, held_out=held_out)).rows}
    assert rows["Their sign"].verdict == "bad"


@pytest.mark.parametrize(
    ("verdicts", "start"),
    [(["good", "good"], "Well"), (["unsure", "unsure", "good"], "Somewhat"), (["good", "bad"], "With care")],
)
def test_the_summary_follows_the_worst_checks(verdicts: Any, start: str) -> None:
    rows = tuple(TrustRow(label="", value="", verdict=verdict, explanation="") for verdict in verdicts)
    assert Trust(rows=rows).summary.startswith(start)
