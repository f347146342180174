import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.errors import RunError
from mnmt_model.training.guards import WINDOW, StepGuard

NORMS = st.lists(
    st.one_of(st.floats(0, 1e6), st.sampled_from([math.nan, math.inf, 1e9])), max_size=3 * WINDOW
)


def patient_guard() -> StepGuard:
    return StepGuard(skip_above=3.0, max_skipped=10_000)


def accepts(guard: StepGuard, norm: float, step: int = 1) -> bool:
    counted, accepted = guard.count(guard.decide(torch.tensor(norm, dtype=torch.float64), step=step))
    assert math.isnan(norm) or counted == norm
    return accepted


def decisions(guard: StepGuard, norms: list[float]) -> list[bool]:
    return [accepts(guard, norm, step) for step, norm in enumerate(norms, start=1)]


@given(NORMS)
def test_without_a_factor_exactly_the_finite_norms_are_accepted(norms: list[float]) -> None:
    guard = StepGuard(max_skipped=10_000)
    assert decisions(guard, norms) == [math.isfinite(norm) for norm in norms]


@given(NORMS, st.integers(0, 3 * WINDOW))
def test_a_resumed_guard_decides_alike(norms: list[float], cut: int) -> None:
    whole, first, second = (patient_guard() for _ in range(3))
    before = decisions(first, norms[:cut])
    second.restore(json.loads(json.dumps(first.state())))
    after = decisions(second, norms[cut:])
    assert before + after == decisions(whole, norms)
    assert second.state() == whole.state()


@given(st.lists(st.floats(0.01, 100), min_size=WINDOW, max_size=2 * WINDOW), st.floats(0.01, 1000))
def test_a_norm_is_held_against_the_median_of_the_window(norms: list[float], norm: float) -> None:
    guard = patient_guard()
    decisions(guard, norms)
    window = sorted(norms[-WINDOW:])
    middle = (window[WINDOW // 2 - 1] + window[WINDOW // 2]) / 2
    assert accepts(guard, norm) == (norm <= 3.0 * middle)


@given(st.floats(1.5, 1e6), st.integers(0, 20))
def test_scale_does_not_matter(norm: float, exponent: int) -> None:
    """Powers of two, so that nothing is rounded."""
    norms = [1.0, 2.0] * (WINDOW // 2) + [norm]
    scaled = [x * 2.0**exponent for x in norms]
    assert decisions(patient_guard(), norms) == decisions(patient_guard(), scaled)


def test_a_lasting_change_of_scale_is_accepted_in_the_end() -> None:
    guard = patient_guard()
    assert decisions(guard, [1.0] * WINDOW + [100.0] * WINDOW)[-WINDOW // 4 :] == [True] * (WINDOW // 4)


@pytest.mark.parametrize(
    ("max_skipped", "norms", "message"),
    [
        (0, [1.0, math.nan], "the gradient norm is nan at step 2; lower"),
        (
            2,
            [1.0, math.inf, math.nan, math.inf],
            "the gradient norm is inf at step 4, after 2 skipped steps; lower",
        ),
        (
            1,
            [1.0] * WINDOW + [math.nan, 52.14],
            "the gradient norm is 52.1, above 3 times the usual 1, at step 66, after 1 skipped step; lower",
        ),
    ],
)
def test_too_many_skipped_steps_end_training(max_skipped: int, norms: list[float], message: str) -> None:
    guard = StepGuard(skip_above=3.0, max_skipped=max_skipped)
    decisions(guard, norms[:-1])
    with pytest.raises(RunError) as caught:
        accepts(guard, norms[-1], len(norms))
    assert str(caught.value) == message + " `learning_rate` or set `clip_norm`"
