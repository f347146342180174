from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mnmt_laws
from mnmt_laws import LawFit, Observations, Perturbation, effective_fractions, fit

ESTIMATE_ONLY = Perturbation(refits=0)


def test_every_public_name_can_be_imported() -> None:
    assert all(hasattr(mnmt_laws, name) for name in mnmt_laws.__all__)
    assert re.match(r"\d+\.\d+", mnmt_laws.__version__)


def test_a_fit_prints_law_objective_and_tasks_in_a_few_lines(two_tasks: LawFit) -> None:
    lines = repr(two_tasks).splitlines()
    assert lines[0] == "LawFit: capacity law (Fernandes et al. 2023, eqs. 11 and 12), log-ols"
    assert lines[1] == two_tasks.law.formula
    assert len(lines) <= 8
    one = two_tasks.parameters.sel(task="en-de")
    low, high = two_tasks.interval().alpha.sel(task="en-de").values
    assert f"  en-de: α {float(one.alpha):.3g} [{low:.3g}, {high:.3g}], L∞ " in repr(two_tasks)


def test_values_by_weight_print_as_a_range(clean: Observations) -> None:
    fitted = fit(clean, law="per-weighting", uncertainty=ESTIMATE_ONLY)
    assert re.search(r"en-de: α [\d.]+ to [\d.]+ over 6 weights, L∞ ", repr(fitted))
    assert "no refits" in repr(fitted)


def test_a_fit_prints_how_many_warnings_it_has(clean: Observations) -> None:
    fitted = fit(clean, law="zhang", uncertainty=ESTIMATE_ONLY)
    assert len(fitted.warnings) > 1
    assert repr(fitted).endswith(f"{len(fitted.warnings)} warnings: see `warnings`.")


def test_rows_are_predicted_as_their_columns_are(two_tasks: LawFit) -> None:
    rows = two_tasks.observations.fit.query("task == 'en-de'")
    for draws in (False, True):
        by_columns = two_tasks.predict(task="en-de", size=rows["size"], weight=rows["weight"], draws=draws)
        np.testing.assert_allclose(two_tasks.predict(rows, draws=draws), by_columns, rtol=1e-12)


def test_rows_bring_their_own_task(two_tasks: LawFit) -> None:
    with pytest.raises(ValueError, match="`rows` must come alone"):
        two_tasks.predict(two_tasks.observations.fit, task="en-de")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "en-de"}, "`size` must be given: the capacity law predicts from it"),
        ({"task": "en-de", "size": -5.0}, "`size` must be above 0 and finite, but is -5"),
        (
            {"task": "en-de", "size": 1e5, "tokens": 1e9},
            "`tokens` must be left out: the capacity law predicts",
        ),
        ({"task": "en-de", "size": 1e5, "mixture": {"a": 1.0}}, "`mixture` must give a weight to en-de"),
        ({"size": 1e5}, "`task` must be one of en-de, en-zh, but is None"),
    ],
)
def test_a_wrong_predictor_is_named(two_tasks: LawFit, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        two_tasks.predict(**arguments)


def test_fractions_say_that_they_need_a_fit() -> None:
    with pytest.raises(
        TypeError, match=r"must be what fit\(source, law='(capacity|joint)'\) returns, but is str"
    ):
        effective_fractions("runs.csv")  # type: ignore[arg-type]


def test_an_uncertainty_is_a_method(clean: Observations) -> None:
    for wrong in ("residual", 200, Perturbation):
        with pytest.raises(TypeError, match="`uncertainty` must be a method such as ResidualBootstrap"):
            fit(clean, uncertainty=wrong)  # type: ignore[arg-type]


def test_the_task_may_be_omitted_where_there_is_one(clean: Observations, two_tasks: LawFit) -> None:
    alone = fit(clean.frame.query("task == 'en-de'"), uncertainty=ESTIMATE_ONLY)
    assert alone.predict(size=1e5) == alone.predict(size=1e5, task="en-de")
    with pytest.raises(ValueError, match="`task` must be one of en-de, en-zh"):
        two_tasks.predict(size=1e5)
