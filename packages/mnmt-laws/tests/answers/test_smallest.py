"""The smallest model that meets targets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mnmt_laws import ArgumentError, LawFit, smallest_model


def losses(fitted: LawFit, size: float, weight: float) -> dict[str, float]:
    mixture = dict(zip(fitted.tasks, (weight, 1 - weight), strict=True))
    return {task: float(fitted.predict(task=task, size=size, mixture=mixture)) for task in fitted.tasks}


def test_losses_that_a_model_has_need_about_that_model(exact: LawFit) -> None:
    size = float(exact.rows["size"].max())
    answer = smallest_model(exact, targets=losses(exact, size, 0.4))
    assert answer.size == pytest.approx(size, rel=0.03)
    assert answer.weights["en-de"] == pytest.approx(0.4, abs=0.03)
    assert answer.fairly_sure >= answer.size


def test_harder_targets_need_larger_models(two_tasks: LawFit) -> None:
    size = 2 * float(two_tasks.rows["size"].max())
    sizes = [
        smallest_model(two_tasks, targets=losses(two_tasks, ratio * size, 0.5)).size for ratio in (0.5, 1, 2)
    ]
    assert sizes == sorted(sizes)
    assert all(np.isfinite(sizes))


def test_a_target_below_the_limit_is_met_by_no_size(two_tasks: LawFit) -> None:
    limit = float(two_tasks.parameters.l_inf.sel(task="en-de"))
    answer = smallest_model(two_tasks, targets={"en-de": 0.5 * limit})
    assert math.isinf(answer.size)
    assert "no size" in answer.reason
    assert not answer.weights


def test_an_unknown_task_is_named(two_tasks: LawFit) -> None:
    with pytest.raises(ArgumentError, match="en-xx"):
        smallest_model(two_tasks, targets={"en-xx": 1.0})
