"""What the law says, on the first screen."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from mnmt_laws import ResidualBootstrap, observe
from mnmt_laws.answers.without_length import without_length
from mnmt_laws.report.advice import LawRow
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.law_card import make_law_rows
from mnmt_laws.report.page import render_page


@pytest.fixture(scope="module")
def rows(loss_analysis: Analysis) -> dict[str, LawRow]:
    return {row.label: row for row in make_law_rows(loss_analysis)}


def test_exponent_limit_and_shares_have_intervals(rows: dict[str, LawRow], loss_analysis: Analysis) -> None:
    alpha = rows["Exponent α, one for all weights"].values
    assert [value.split()[0] for value in alpha] == loss_analysis.tasks
    assert all(" to " in value for value in alpha)
    shares = rows["Share of the model, f(p)"].values[0]
    assert shares.count("f(") == 3
    assert all("known" in value for value in rows["Limit L∞"].values) or "Limit L∞" not in rows


def test_held_out_values_are_counted_by_what_is_new(rows: dict[str, LawRow], loss_analysis: Analysis) -> None:
    values = rows["Held-out losses within their intervals"].values
    held_out = loss_analysis.held_out.rows
    assert len(values) == held_out[["new_size", "new_length", "new_weight"]].any().sum()
    assert all(" of " in value and "error" in value for value in values)


def test_a_law_without_length_is_shown_beside_one_with(loss_analysis: Analysis) -> None:
    frame = loss_analysis.observations.frame
    parts = [
        frame.assign(tokens=tokens, value=frame["value"] * factor) for tokens, factor in ((1e6, 2), (1e7, 1))
    ]
    columns = ["size", "tokens", "task", "weight", "mixture", "value"]
    lengths = observe(pd.concat(parts)[columns])
    answer = without_length(lengths, uncertainty=ResidualBootstrap(refits=5))
    shown = make_law_rows(replace(loss_analysis, without_length=answer))[-1]
    assert shown.label == "The same without training length"
    assert shown.values[0].startswith("misses 10 times as long training by ")
    assert "at 1M" in shown.values[1]
    assert "What the law says" in render_page(replace(loss_analysis, without_length=answer), [])


def test_many_tasks_have_no_card(loss_analysis: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Analysis, "tasks", property(lambda _: ["aa", "bb", "cc"]))
    assert make_law_rows(loss_analysis) == ()
