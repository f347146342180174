"""From losses to sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import LawFit, Observations, Perturbation, fit, smallest_size


@given(share=st.floats(0.1, 0.9), size=st.floats(1e4, 1e8))
def test_the_smallest_size_of_losses_that_a_model_has_is_that_model(
    exact: LawFit, share: float, size: float
) -> None:
    mixture = {"en-de": share, "en-zh": 1 - share}
    targets = {
        task: float(exact.predict(task=task, size=size, weight=weight)) for task, weight in mixture.items()
    }
    answer = smallest_size(exact, targets=targets)
    assert answer.size == pytest.approx(size, rel=1e-5)
    assert answer.weights == pytest.approx(mixture, abs=1e-4)


def test_a_feasible_answer_meets_its_targets(three_tasks: LawFit) -> None:
    targets = {"en-de": 0.35, "en-fr": 0.4, "en-zh": 0.45}
    answer = smallest_size(three_tasks, targets=targets)
    for task, target in targets.items():
        predicted = three_tasks.predict(task=task, size=answer.size, mixture=answer.weights)
        assert float(predicted) <= target * (1 + 1e-6)
    low, high = answer.interval
    assert low < answer.size < high


@given(first=st.floats(0.3, 0.6), step=st.floats(0.001, 0.2))
def test_easier_targets_never_need_larger_models(exact: LawFit, first: float, step: float) -> None:
    hard, easy = (
        smallest_size(exact, targets={"en-de": target, "en-zh": 0.4}).size for target in (first, first + step)
    )
    assert easy <= hard * (1 + 1e-6)


def test_beyond_the_limit_nothing_is_enough(two_tasks: LawFit) -> None:
    answer = smallest_size(two_tasks, targets={"en-de": 0.1, "en-zh": 0.5})
    assert answer.size == float("inf")
    assert answer.weights == {}
    assert answer.infeasible_share == 1.0
    limit = float(two_tasks.parameters.l_inf.sel(task="en-de"))
    assert answer.reason == f"infeasible: L∞ of en-de ({limit:.4g}) exceeds the target 0.1"


def test_unknown_uncertainty_is_nan(clean: Observations) -> None:
    bare = fit(clean, law="capacity", uncertainty=Perturbation(refits=0))
    assert np.isnan(smallest_size(bare, targets={"en-de": 0.3}).infeasible_share)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({}, "`targets` must name tasks of en-de, en-zh, but names none"),
        ({"en-fr": 1.0}, "`targets` must name tasks of en-de, en-zh, but names en-fr"),
        ({"en-de": float("nan")}, "`targets` must be finite numbers, but en-de's is nan"),
    ],
)
def test_wrong_targets_are_refused(exact: LawFit, targets: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        smallest_size(exact, targets=targets)
