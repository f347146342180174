"""Runs far off the law are named, and only those."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import LawFit, ResidualBootstrap, fit, observe
from mnmt_laws.solver.objective import ObjectiveName

NONE = ResidualBootstrap(refits=0)


def table(count: int = 9, *, noise: float = 0.001, seed: int = 0) -> pd.DataFrame:
    size = np.geomspace(1e6, 1e8, count)
    scatter = 1 + noise * np.random.default_rng(seed).standard_normal(count)
    return pd.DataFrame({"size": size, "value": (1.5 + 27 * size**-0.24) * scatter})


def raised(rows: dict[int, float], count: int = 9) -> pd.DataFrame:
    """Return a table some of whose values are multiplied."""
    frame = table(count)
    for place, factor in rows.items():
        frame.loc[place, "value"] *= factor
    return frame


def named(fitted: LawFit) -> list[str]:
    return [line.message for line in fitted.diagnostics if line.kind == "far-off"]


@pytest.mark.parametrize("objective", ["log-ols", "ols"])
@pytest.mark.parametrize("place", [1, 4, 7])
def test_a_run_that_diverged_is_named_first(objective: ObjectiveName, place: int) -> None:
    frame = raised({place: 1.6})
    fitted = fit(frame, law="power", objective=objective, uncertainty=NONE)
    (message,) = named(fitted)
    without = fit(frame.drop(index=place), law="power", objective=objective, uncertainty=NONE)
    error = frame["value"][place] / without.predict(size=frame["size"][place]) - 1
    assert f"row {place + 2}: " in message  # the header is row 1
    assert f"lies {error:.0%} above the law fitted without it" in message
    assert fitted.warnings[0] == message
    assert not named(without)


def test_a_run_may_lie_below_and_several_may_be_far_off() -> None:
    messages = named(fit(raised({4: 0.7, 12: 1.5}, count=20), law="power", uncertainty=NONE))
    sides = [("row 6: " in message, "below" in message) for message in messages]
    assert sides == [(True, True), (False, False)]
    assert "row 14: " in messages[1]


@pytest.mark.parametrize("places", [(0,), (8,), (2, 5), (0, 8)])
def test_runs_that_draw_the_law_to_themselves_are_named(places: tuple[int, ...]) -> None:
    messages = named(fit(raised(dict.fromkeys(places, 1.5)), law="power", uncertainty=NONE))
    assert [f"row {place + 2}: " in line for place, line in zip(places, messages, strict=True)] == [
        True
    ] * len(places)


def test_a_run_that_is_left_out_is_no_part_of_the_fit() -> None:
    frame = raised({6: 1.6})
    marked = frame.assign(role=np.where(frame.index == 6, "left-out", "fit"))
    observations = observe(marked)
    assert len(observations.rows_to_fit()) == 8
    assert observations.held_out.empty
    without = fit(frame.drop(index=6), law="power", uncertainty=NONE)
    assert fit(observations, law="power", uncertainty=NONE).parameters.equals(without.parameters)


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 8, 30])
def test_noise_raises_no_alarm(count: int) -> None:
    for seed in range(25):
        fitted = fit(table(count, noise=0.02, seed=seed), law="power", uncertainty=NONE)
        assert not named(fitted)


def test_too_few_rows_name_none() -> None:
    assert not named(fit(raised({1: 1.6}, count=4), law="power", uncertainty=NONE))
