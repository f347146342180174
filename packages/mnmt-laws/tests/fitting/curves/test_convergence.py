"""Runs stopped early are read at the horizon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import RunTable, TableError, observe, read_table
from mnmt_laws.fitting.curves.convergence import correct_convergence

HORIZON = 2_500_000


def curve(steps: np.ndarray, *, rate: float = 0.4, floor: float = 1.2) -> np.ndarray:
    """A power law that has 1 nat left at 50,000 steps."""
    return np.asarray(floor + (steps / 50_000) ** -rate)


def run_rows(run: str, last: float, *, count: int = 20, **columns: Any) -> pd.DataFrame:
    steps = np.linspace(last / count, last, count).round()
    frame = pd.DataFrame({"step": steps, "value": curve(steps)})
    given: dict[str, Any] = {
        "run": run,
        "size": 1e6,
        "task": "en-de",
        "weight": 1.0,
        "metric": "loss",
    } | columns
    return frame.assign(**given)


def table(*runs: pd.DataFrame) -> RunTable:
    return read_table(pd.concat(runs))


@pytest.mark.parametrize("rate", [0.2, 0.5, 1.0])
def test_a_run_stopped_early_is_read_at_the_horizon(rate: float) -> None:
    rows = run_rows("early", 500_000)
    rows["value"] = curve(rows["step"].to_numpy(), rate=rate)
    found = correct_convergence(table(rows), horizon=HORIZON, threshold=0.0)
    expected = curve(np.array([HORIZON]), rate=rate)[0]
    one = observe(found.table).frame.iloc[0]
    assert one["value"] == pytest.approx(expected, rel=1e-3)
    assert one["step"] == HORIZON
    assert bool(one["corrected"])
    assert found.warnings == (
        "1 value is corrected for convergence: read at 2.5e+06 steps from the learning curve.",
    )


def test_the_curve_tells_what_was_fitted() -> None:
    (found,) = correct_convergence(table(run_rows("early", 500_000)), horizon=HORIZON).curves
    assert (found.run, found.task, found.weight, found.size) == ("early", "en-de", 1.0, 1e6)
    assert found.corrected
    assert found.horizon == HORIZON
    assert found.value == pytest.approx(curve(np.array([HORIZON]))[0], rel=1e-3)
    np.testing.assert_allclose(found.values, curve(found.steps))
    np.testing.assert_allclose(found.fitted_values, curve(found.fitted_steps), rtol=1e-6)
    assert found.fitted_steps[0] >= 50_000  # the first tenth is left out
    assert found.fitted_steps[-1] == pytest.approx(HORIZON)
    assert found.std < 1e-6


def test_noise_gives_the_reading_a_spread_that_covers_the_truth() -> None:
    rows = run_rows("early", 1_000_000, count=60)
    rows["value"] *= np.exp(0.002 * np.random.default_rng(0).standard_normal(len(rows)))
    (found,) = correct_convergence(table(rows), horizon=HORIZON).curves
    assert 0 < found.std < 0.05
    assert abs(found.value - curve(np.array([HORIZON]))[0]) < 3 * found.std


def test_warm_up_is_left_out_of_the_fit() -> None:
    rows = run_rows("early", 500_000, count=40)
    rows.loc[rows["step"] < 50_000, "value"] = 9.0
    (found,) = correct_convergence(table(rows), horizon=HORIZON).curves
    assert found.value == pytest.approx(curve(np.array([HORIZON]))[0], rel=1e-3)
    (spoilt,) = correct_convergence(table(rows), horizon=HORIZON, skip=0.0).curves
    assert spoilt.value != pytest.approx(found.value, rel=1e-2)


def test_runs_that_have_converged_stay_as_they_are() -> None:
    flat = run_rows("flat", 500_000)
    flat["value"] = 1.0 + 1e-6 * curve(flat["step"].to_numpy())
    whole = run_rows("whole", HORIZON)
    given = table(flat, whole)
    found = correct_convergence(given, horizon=HORIZON)
    pd.testing.assert_frame_equal(found.table.frame.drop(columns=["corrected", "value_std"]), given.frame)
    assert not found.table.frame["corrected"].any()
    assert [one.run for one in found.curves] == ["flat"]
    assert found.warnings == ()


def test_the_threshold_decides_what_has_converged() -> None:
    rows = table(run_rows("early", 1_000_000))
    last, end = curve(np.array([1_000_000.0, HORIZON]))
    fall = last / end - 1
    below, above = (
        correct_convergence(rows, horizon=HORIZON, threshold=threshold * (1 - end / last)).curves[0].corrected
        for threshold in (0.9, 1.1)
    )
    assert fall > 0
    assert below
    assert not above


def test_only_the_last_row_of_a_corrected_run_changes() -> None:
    given = table(run_rows("early", 500_000), run_rows("whole", HORIZON, size=2e6))
    found = correct_convergence(given, horizon=HORIZON).table.frame
    changed = found["corrected"]
    assert changed.sum() == 1
    columns = ["corrected", "value_std"]
    pd.testing.assert_frame_equal(found[~changed].drop(columns=columns), given.frame[~changed])
    assert found["value_std"].notna().equals(changed)
    assert given.frame.loc[changed, "step"].item() == 500_000  # the table given is left alone


def test_short_curves_stay_and_say_so() -> None:
    found = correct_convergence(table(run_rows("short", 500_000, count=4)), horizon=HORIZON)
    assert found.curves == ()
    assert not found.table.frame["corrected"].any()
    assert found.warnings == ("1 learning curve has fewer than 5 points past the warm-up; not corrected.",)


def test_runs_of_one_name_are_told_apart_by_what_they_are() -> None:
    small, large = run_rows("x", 500_000), run_rows("x", 500_000, size=2e6)
    large["value"] = curve(large["step"].to_numpy(), floor=0.7)
    found = correct_convergence(table(small, large), horizon=HORIZON)
    ends = dict(zip(*observe(found.table).frame[["size", "value"]].to_numpy().T, strict=True))
    left = curve(np.array([HORIZON]), floor=0.0)[0]
    assert ends == pytest.approx({1e6: 1.2 + left, 2e6: 0.7 + left}, rel=1e-3)


def test_runs_without_steps_stay_beside_the_others() -> None:
    single = run_rows("single", 1, count=1, size=3e6).assign(step=np.nan)
    found = correct_convergence(table(run_rows("early", 500_000), single), horizon=HORIZON)
    assert [one.run for one in found.curves] == ["early"]
    assert len(observe(found.table).frame) == 2


def test_tasks_of_one_run_are_read_one_by_one_and_zero_shot_ones_not() -> None:
    trained, zero_shot = (
        run_rows("early", 500_000, task=task, weight=weight, mixture="en-de:1.0,en-zh:0.0")
        for task, weight in (("en-de", 1.0), ("en-zh", 0.0))
    )
    found = correct_convergence(table(trained, zero_shot), horizon=HORIZON)
    assert [(one.run, one.task) for one in found.curves] == [("early", "en-de")]


def test_a_metric_that_rises_is_read_at_its_horizon() -> None:
    rows = run_rows("early", 500_000)
    rows = rows.assign(metric="chrf", value=70 - 10 * rows["value"])
    found = correct_convergence(table(rows), horizon=HORIZON, metric="chrf")
    end = curve(np.array([HORIZON]))[0]
    assert found.curves[0].value == pytest.approx(70 - 10 * end, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "`horizon` must be above 0 steps, but is 0"),
        ({"horizon": 1, "skip": 1.0}, r"`skip` must be in \[0, 1\) .*, but they are 1.0 and 0.005"),
        ({"horizon": 1, "threshold": -0.1}, "`threshold` at least 0, but they are 0.1 and -0.1"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        correct_convergence(table(run_rows("early", 500_000)), **options)  # type: ignore[arg-type]


def test_a_table_without_steps_is_refused() -> None:
    rows = run_rows("one", 1, count=1).drop(columns="step")
    with pytest.raises(TableError, match="no `step` column; a correction for convergence needs each run"):
        correct_convergence(table(rows), horizon=HORIZON)


def cool_down(rows: pd.DataFrame, *, share: float = 0.3, fall: float = 0.04) -> pd.DataFrame:
    """The curve of a run whose learning rate falls to 0 over the last `share` of its steps."""
    late = np.clip((rows["step"] / rows["step"].max() - (1 - share)) / share, 0, 1)
    return rows.assign(value=rows["value"] * (1 - fall * late))


def noisy(rows: pd.DataFrame, noise: float, seed: int = 0) -> pd.DataFrame:
    normal = np.random.default_rng(seed).standard_normal(len(rows))
    return rows.assign(value=rows["value"] * np.exp(noise * normal))


def runs(count: int, noise: float, *, cooled: bool = False, **columns: Any) -> pd.DataFrame:
    """Curves of several sizes with floors and rates of their own."""
    curves = []
    for seed in range(count):
        rows = run_rows(f"run {seed}", 500_000, size=1e6 * 1.3**seed, **columns)
        rows["value"] = curve(
            rows["step"].to_numpy(), rate=0.3 + 0.05 * (seed % 5), floor=1.1 + 0.1 * (seed % 7)
        )
        curves.append(noisy(cool_down(rows) if cooled else rows, noise, seed))
    return pd.concat(curves)


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (cool_down(run_rows("x", 500_000)), 1),
        (noisy(cool_down(run_rows("x", 500_000, count=40)), 0.001), 1),
        (runs(12, 0.01, cooled=True), 12),
        (run_rows("recorded", 500_000, cooldown_start=400_000), 1),
        (run_rows("recorded", 500_000, cooldown_start=500_000), 0),
        (run_rows("trunk", 500_000), 0),
        (runs(12, 0.01), 0),
        (runs(12, 0.001), 0),
    ],
    ids=["exact", "little noise", "much noise, many", "recorded", "recorded trunk", "trunk", "noisy", "many"],
)
def test_a_curve_that_ends_in_a_cooldown_is_no_trunk(rows: pd.DataFrame, count: int) -> None:
    found = correct_convergence(table(rows), horizon=HORIZON)
    told = [line for line in found.warnings if "cool-down" in line]
    if count:
        curves = "1 learning curve ends" if count == 1 else f"{count} learning curves end"
        assert told == [
            f"{curves} in a cool-down of the learning rate, whose fall does not go on; not corrected: train "
            f"a "
            "run with a cool-down of its own for every length."
        ]
        assert found.curves == ()
        assert not found.table.frame["corrected"].any()
    else:
        assert told == []
        assert found.table.frame["corrected"].any()


def test_a_recorded_trunk_is_none_whatever_its_shape() -> None:
    rows = cool_down(run_rows("x", 500_000), fall=0.003).assign(cooldown_start=500_000)
    assert len(correct_convergence(table(rows), horizon=HORIZON).curves) == 1


def test_a_curve_that_levels_off_is_left_alone() -> None:
    rows = run_rows("x", 500_000, count=40)
    rows["value"] = np.maximum(rows["value"], curve(np.array([400_000.0]))[0])
    found = correct_convergence(table(rows), horizon=HORIZON)
    assert not found.table.frame["corrected"].any()
    assert found.warnings == ("1 learning curve levels off sooner than a power law; not corrected.",)


def test_curves_that_no_change_predicts_as_well_are_left_alone() -> None:
    curves = []
    for seed in range(8):
        rows = noisy(run_rows(f"x{seed}", 500_000, size=1e6 + seed), 0.02, seed)
        early = rows["step"] <= 300_000
        curves.append(rows.assign(value=np.where(early, rows["value"], rows.loc[early, "value"].iloc[-1])))
    found = correct_convergence(table(pd.concat(curves)), horizon=HORIZON)
    assert not found.table.frame["corrected"].any()
    assert any("leaving the loss alone was off by 0.00%" in line for line in found.warnings)


def test_a_back_test_needs_points() -> None:
    found = correct_convergence(table(run_rows("x", 500_000, count=6)), horizon=HORIZON)
    assert found.warnings == (
        "1 learning curve is not corrected: two thirds of the steps hold fewer than 5 points, so the "
        "correction "
        "cannot be tested.",
    )


def test_errors_of_corrections_cover_the_truth_and_widen_the_fits_intervals() -> None:
    rows = runs(12, 0.004)
    found = correct_convergence(table(rows), horizon=HORIZON)
    frame = observe(found.table).frame
    seed = frame["run"].str.removeprefix("run ").astype(int)
    end = np.array([HORIZON])
    truth = [curve(end, rate=0.3 + 0.05 * (n % 5), floor=1.1 + 0.1 * (n % 7))[0] for n in seed]
    away = (frame["value"] - truth).abs() / frame["value_std"]
    assert frame["corrected"].all()
    assert (away < 2).mean() >= 0.9


def test_tokens_grow_with_the_steps() -> None:
    rows = run_rows("early", 500_000)
    rows = rows.assign(tokens=100.0 * rows["step"], flops=1e6 * rows["step"])
    (row,) = observe(correct_convergence(table(rows), horizon=HORIZON).table).frame.to_dict("records")
    assert (row["tokens"], row["flops"]) == (100 * HORIZON, 1e6 * HORIZON)
