"""The first screen answers, and does not contradict itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import LawFit, Perturbation, fit, recommend
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.first_screen import first_screen
from mnmt_laws.report.page import render_page
from mnmt_laws.report.trust import Trust, TrustRow, make_trust

Analyse = Callable[..., Analysis]
ByLaw = Callable[[LawFit], Analysis]


def test_it_says_the_advice_the_range_and_the_stake(loss_analysis: Analysis) -> None:
    advice, screen = loss_analysis.study.recommendation, first_screen(loss_analysis.study)
    assert advice is not None
    for source, weight in advice.weights.items():
        assert f"{weight:.0%} {source}" in screen.headline
    assert "Any weight of" in " ".join(screen.sentences)
    assert screen.stakes is not None
    assert [row[0] for row in screen.stakes.rows] == [rival.name for rival in advice.rivals]
    assert screen.figure is not None
    assert len(screen.figure.specs) == 1


def test_three_tasks_have_a_bar_each(three_analysis: Analysis) -> None:
    figure = first_screen(three_analysis.study).figure
    assert figure is not None
    (spec,) = figure.specs
    bars = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "bar")
    (rows,) = [spec["datasets"][bars["data"]["name"]]] if "datasets" in spec else [bars["data"]["values"]]
    assert {row["source"] for row in rows} == {"aa", "bb", "cc"}
    assert sum(row["weight"] for row in rows) == pytest.approx(1, abs=1e-5)


def test_one_task_has_a_prediction_and_no_mixture(one_task: pd.DataFrame, analyse_table: Analyse) -> None:
    alone = one_task[one_task["weight"].eq(1.0)]
    screen = first_screen(analyse_table(alone, uncertainty=Perturbation(refits=0)).study)
    assert "expected to reach loss" in screen.headline
    assert screen.figure is not None
    assert screen.stakes is None


def test_a_table_without_mixtures_says_what_to_train(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    analysis = analyse_table(losses[losses["weight"].eq(1.0)], uncertainty=Perturbation(refits=0))
    assert first_screen(analysis.study).headline.startswith("No mixture is advised: ")
    assert "<figure" not in render_page(analysis).partition('<nav class="contents"')[0]


@pytest.mark.slow
def test_a_hopeless_table_still_has_advice(losses: pd.DataFrame, analyse_table: Analyse) -> None:
    noise = np.random.default_rng(0).normal(0, 0.5, len(losses))
    analysis = analyse_table(losses.assign(value=losses["value"] * np.exp(noise)))
    text = render_page(analysis)
    assert "Train a model" in first_screen(analysis.study).headline
    for pair in (("not compared", "compare rival laws"), ("undetermined", " determined")):
        first = text.partition('<nav class="contents"')[0]
        assert not all(words in first for words in pair)


@pytest.mark.slow
def test_of_three_sizes_larger_models_are_not_tested(losses: pd.DataFrame, by_law: ByLaw) -> None:
    mixed = losses[losses["role"].eq("fit") & losses["weight"].between(0, 1, inclusive="neither")]
    law = fit(mixed[mixed["size"].ne(mixed["size"].min())], law="joint", uncertainty=Perturbation(refits=0))
    advice = recommend(law.observations, refits=0)
    study = replace(by_law(law).study, recommendation=advice)
    study.__dict__["law"] = law
    assert advice.forecast.table["size_error"].notna().any()
    trust = make_trust(study)
    assert {row.label: row.value for row in trust.rows}["Larger models"] == "not tested"
    assert trust.summary == "Unknown: the table allows no check."


@pytest.mark.parametrize(
    ("verdicts", "start"),
    [
        (["good", "good"], "Well"),
        (["unsure", "unsure", "good"], "Somewhat"),
        (["good", "bad"], "With care"),
        (["good", "untested"], "Somewhat: 1 of 2 checks passed, 1 could not be made."),
        (["unsure", "untested"], "Somewhat: 1 of 2 checks is undecided, 1 could not be made."),
        (["good", "bad", "untested"], "With care: 1 of 3 checks failed, 1 could not be made."),
        (["untested"], "Unknown"),
        ([], "Unknown"),
    ],
)
def test_the_summary_follows_the_worst_checks(verdicts: Any, start: str) -> None:
    rows = tuple(TrustRow(label="", value="", verdict=verdict, explanation="") for verdict in verdicts)
    assert Trust(rows=rows).summary.startswith(start)
