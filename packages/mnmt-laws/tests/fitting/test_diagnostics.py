"""What a fit says of its own limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mnmt_laws import KnownLaw, LawFit, Observations, ResidualBootstrap, TableError, fit, observe, simulate
from mnmt_laws.fitting import task_fit
from mnmt_laws.fitting.diagnostics import (
    check_constant,
    check_lengths,
    fit_warnings,
    is_undetermined,
)
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.solver.descent import Descent
from mnmt_laws.solver.search import refit

ESTIMATE_ONLY = ResidualBootstrap(refits=0)


def messages(fitted: LawFit, kind: str) -> list[str]:
    return [line.message for line in fitted.diagnostics if line.kind == kind]


def fit_of(law: LawName, **columns: NDArray[np.float64]) -> LawFit:
    frame = pd.DataFrame(columns).assign(task="a", metric="loss")
    frame = frame.assign(weight=1.0) if "weight" not in frame else frame
    return fit(observe(frame), law=law, uncertainty=ESTIMATE_ONLY, prior="none")


def test_two_sizes_are_too_few_for_a_law_of_size_alone() -> None:
    size, seed = np.repeat([1e6, 1e7], 3), np.arange(6.0)
    value = 1 + (size / 1e6) ** -0.3 * np.linspace(1, 1.01, 6)
    fitted = fit_of("power", size=size, value=value, seed=seed)
    assert "a: 2 sizes do not identify the exponents and the limit; add others." in messages(
        fitted, "unidentified"
    )


def test_where_tokens_vary_the_rank_of_the_derivatives_decides() -> None:
    size, tokens = (axis.ravel() for axis in np.meshgrid([1e6, 1e7], np.geomspace(1e8, 1e10, 5)))
    value = 1 + (size / 3e6) ** -0.3 + (tokens / 1e9) ** -0.4
    lines = messages(fit_of("chinchilla", size=size, tokens=tokens, value=value), "unidentified")
    assert not any("sizes do not identify" in line for line in lines)
    assert any("alpha" in line and "not identified" in line for line in lines)
    size, tokens = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e6, 1e8, 4), [1e8, 1e9, 1e10]))
    value = 1 + (size / 3e6) ** -0.3 + (tokens / 1e9) ** -0.4
    assert not messages(fit_of("chinchilla", size=size, tokens=tokens, value=value), "unidentified")


def test_a_limit_at_the_known_irreducible_loss_says_so() -> None:
    size = np.geomspace(1e5, 1e8, 7)
    frame = pd.DataFrame({"size": size, "value": 0.8 + (size / 1e6) ** -0.4}).assign(
        task="a", metric="loss", weight=1.0, irreducible=0.5
    )
    bounded = fit(observe(frame), law="power", uncertainty=ESTIMATE_ONLY)
    assert float(bounded.parameters.l_inf.squeeze()) == 0.5
    assert messages(bounded, "bound") == [
        "a: l_inf is at the known irreducible loss 0.5; the data do not determine it."
    ]
    free = fit(observe(frame), law="power", uncertainty=ESTIMATE_ONLY, irreducible="ignore")
    assert not messages(free, "bound")


@pytest.mark.parametrize(
    ("starts", "low", "high", "expected"),
    [
        ((-0.9, -0.4, -0.1, 0.05, 0.2, 0.6, 1.5, 6.0), -0.2, 1.1, True),  # either sign
        ((-0.9, -0.4, -0.1, 0.05, 0.2, 0.6, 1.5, 6.0), -0.04, 0.03, False),  # surely about zero
        ((-0.9, -0.4, -0.1, 0.05, 0.2, 0.6, 1.5, 6.0), 0.1, 0.3, False),
        (tuple(np.geomspace(0.01, 4, 24)), 0.2, 0.6, False),
        (tuple(np.geomspace(0.01, 4, 24)), 0.05, 1.5, True),
        ((0.3,), 0.05, 2.0, True),
        ((0.3,), 0.2, 0.5, False),
    ],
)
def test_wide_intervals_leave_a_parameter_undetermined(
    starts: tuple[float, ...], low: float, high: float, expected: bool
) -> None:
    assert is_undetermined(np.array(starts), low, high) is expected


def test_good_data_leave_nothing_undetermined_and_poor_data_do() -> None:
    weights = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
    laws = {
        name: KnownLaw.capacity(alpha=0.42, beta=1300, l_inf=0.85, c1=0.18, c2=0.55, c3=1.1) for name in "ab"
    }
    sizes = np.geomspace(2e7, 1e9, 8).tolist()
    good = fit(observe(simulate(laws, sizes=sizes, weights=(*weights, 0.0), noise=0.003)), law="capacity")
    assert not messages(good, "undetermined")
    poor = fit(observe(simulate(laws, sizes=sizes[:4], weights=(0.0, 0.5, 1.0), noise=0.1)), law="capacity")
    assert messages(poor, "undetermined")


@pytest.mark.parametrize(("failed", "known"), [(1, True), (5, False)])
def test_too_many_failed_refits_leave_the_uncertainty_unknown(
    failed: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some_fail(*arguments: object) -> Descent:
        end = refit(*arguments)  # type: ignore[arg-type]
        return Descent(vectors=end.vectors, cost=end.cost, converged=np.arange(len(end.cost)) >= failed)

    monkeypatch.setattr(task_fit, "refit", some_fail)
    size = np.geomspace(1e5, 1e8, 9)
    frame = pd.DataFrame({"size": size, "value": 0.8 + (size / 1e6) ** -0.4 * np.linspace(1, 1.02, 9)})
    rows = observe(frame.assign(task="a", metric="loss", weight=1.0))
    fitted = fit(rows, law="power", uncertainty=ResidualBootstrap(refits=20))
    assert messages(fitted, "not-converged") == [f"a: {failed} of 20 refits did not end at a minimum."]
    assert bool(np.isfinite(fitted.std.alpha).all()) is known


def observed(sizes: list[float], lengths: list[float | None], column: str = "tokens") -> Observations:
    rows = pd.DataFrame({"size": sizes, column: lengths, "value": [3.0 - 0.1 * n for n in range(len(sizes))]})
    return observe(rows)


@pytest.mark.parametrize(
    ("sizes", "lengths", "within", "between"),
    [
        ([1, 2, 4], [100, 100, 100], False, False),
        ([1, 2, 4], [100, 101.9, 100], False, False),
        ([1, 2, 4], [100, 100, 103], False, True),
        ([1, 1, 2, 2], [100, 200, 100, 200], True, False),
        ([1, 1, 2], [100, 200, 900], True, True),
        ([1, 2, 4], [None, 100, 900], False, True),
        ([1, 1, 1], [None, 100, 900], True, False),
        ([1, 2, 4], [None, None, None], False, False),
    ],
)
def test_lengths_are_compared_within_cells_and_between(
    sizes: list[float], lengths: list[float | None], within: bool, between: bool
) -> None:
    measured = observed(sizes, lengths).lengths
    assert (measured.within, measured.between) == (within, between)


def test_a_law_without_length_warns_where_cells_differ() -> None:
    assert check_lengths(observed([1, 2, 4], [100, 100, 100]), LAWS["joint"]) == ()
    assert check_lengths(observed([1, 2, 4], [100, 200, 400]), LAWS["joint"]) == (
        "table: runs were trained for 100 to 400 tokens, but the joint law does not know length and takes "
        "its effect for that of size or mixture; read all at one length (--at tokens=…) or fit a law of "
        "length (such as --law length).",
    )


def test_a_law_without_length_refuses_one_cell_at_several_lengths() -> None:
    with pytest.raises(TableError) as caught:
        check_lengths(observed([1, 2, 2, 2], [100, 200, 100, 300]), LAWS["joint"])
    assert str(caught.value) == (
        "table rows 4 and 5: the same task, mixture and size after 100 and 300 tokens, but the joint law "
        "does not know length; read all at one length (--at tokens=…) or fit a law of length (such as --law "
        "length)."
    )


@pytest.mark.parametrize("law", ["chinchilla", "length", "gordon"])
def test_a_law_of_length_takes_runs_of_every_length(law: str) -> None:
    observations = observed([1, 2, 2, 4], [100, 100, 300, 900])
    assert check_lengths(observations, LAWS[law]) == fit_warnings(observations, LAWS[law]) == ()


def test_a_constant_metric_is_refused() -> None:
    rows = pd.DataFrame({"size": [1, 2, 4] * 2, "task": [*"aaabbb"], "value": [3, 2, 1, 2, 2, 2]})
    observations = observe(rows)
    check_constant(observations.fit[observations.fit["task"] == "a"], observations)
    with pytest.raises(TableError) as caught:
        check_constant(observations.fit, observations)
    assert str(caught.value) == (
        "table row 5: loss of b is 2 in all 3 rows, so it does not depend on size or mixture; leave the task "
        "out, or choose another --metric."
    )
