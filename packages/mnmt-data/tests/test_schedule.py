import json
from fractions import Fraction
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit_scalarization, linear_schedule

EVEN = Mixture({"a": 0.5, "b": 0.5})
ONLY_A = Mixture({"a": 1.0, "b": 0.0})


@st.composite
def mixtures(draw, tasks=("a", "b", "c")):
    parts = draw(st.lists(st.integers(0, 1000), min_size=len(tasks), max_size=len(tasks)).filter(any))
    return Mixture({task: part / sum(parts) for task, part in zip(tasks, parts, strict=True)})


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"step": -1}, r"`step` must not be negative, but is -1\."),
        ({"kept": 0.0}, r"`kept` must be in \(0, 1\], but is 0\.0\."),
        ({"kept": 1.5}, r"`kept` must be in \(0, 1\], but is 1\.5\."),
        ({"kept": nan}, r"`kept` must be in \(0, 1\], but is nan\."),
        ({"loss_weights": {"a": 1.0, "z": 2.0}}, r"`loss_weights` must be of tasks .*, but one is 'z'\."),
        ({"loss_weights": {"a": -1.0}}, r"`loss_weights` must be finite and not negative, but a has -1\.0\."),
        ({"loss_weights": {"b": nan}}, r"`loss_weights` must be finite and not negative, but b has nan\."),
    ],
)
def test_a_phase_names_what_is_out_of_range(field, message):
    with pytest.raises(ValueError, match=message):
        Phase(mixture=EVEN, **field)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ((), r"`phases` must begin with one at step 0\."),
        ((Phase(mixture=EVEN, step=1),), r"`phases` must begin with one at step 0\."),
        (
            (Phase(mixture=EVEN), Phase(mixture=EVEN, step=5), Phase(mixture=EVEN, step=5)),
            r"`phases` must start one after the other, but one at step 5 does not\.",
        ),
        (
            (Phase(mixture=EVEN), Phase(mixture=EVEN, step=5), Phase(mixture=EVEN, step=4)),
            r"`phases` must start one after the other, but one at step 4 does not\.",
        ),
        (
            (Phase(mixture=EVEN), Phase(mixture=Mixture({"a": 1.0}), step=5)),
            r"`phases` must have the same tasks in the same order; give weight 0 to those not drawn\.",
        ),
        (
            (Phase(mixture=EVEN), Phase(mixture=Mixture({"b": 0.5, "a": 0.5}), step=5)),
            r"`phases` must have the same tasks in the same order",
        ),
    ],
)
def test_a_schedule_names_what_does_not_follow(phases, message):
    with pytest.raises(ValueError, match=message):
        Schedule(phases)


@given(steps=st.sets(st.integers(1, 50), max_size=5), step=st.integers(0, 60))
def test_a_step_is_in_the_last_phase_that_has_begun(steps, step):
    starts = [0, *sorted(steps)]
    schedule = Schedule(tuple(Phase(mixture=EVEN, step=start) for start in starts))
    assert schedule.index(step) == sum(start <= step for start in starts) - 1
    assert schedule.tasks == ("a", "b")


def test_a_constant_schedule_is_one_phase():
    (phase,) = Schedule.constant(EVEN).phases
    assert (phase.mixture, phase.step, phase.kept, dict(phase.loss_weights)) == (EVEN, 0, 1.0, {})


@given(mixtures(), st.tuples(*[st.floats(0, 10)] * 3))
def test_explicit_scalarization_expects_the_weighted_sum_of_losses(mixture, losses):
    """Fernandes et al. 2023, eq. 4: the expected loss of a drawn pair is Σ p_i L_i."""
    phase = explicit_scalarization(mixture)
    assert phase.mixture.tasks == mixture.tasks
    expected = sum(
        phase.mixture.weights[task] * phase.loss_weights.get(task, 1.0) * loss
        for task, loss in zip(mixture.tasks, losses, strict=True)
    )
    weighted = sum(mixture.weights[task] * loss for task, loss in zip(mixture.tasks, losses, strict=True))
    assert expected == pytest.approx(weighted, rel=1e-12)


@given(mixtures())
def test_explicit_scalarization_draws_all_tasks_alike(mixture):
    positive = [task for task, weight in mixture.weights.items() if weight > 0]
    drawn = explicit_scalarization(mixture).mixture.weights
    assert drawn == {task: 1 / len(positive) if task in positive else 0.0 for task in mixture.tasks}


@given(start=mixtures(), end=mixtures(), changes=st.integers(1, 20), stretch=st.integers(1, 9))
def test_moving_weights_go_in_a_straight_line(start, end, changes, stretch):
    schedule = linear_schedule(start, end, steps=changes * stretch, changes=changes)
    assert [phase.step for phase in schedule.phases] == [stretch * move for move in range(changes + 1)]
    assert schedule.phases[0].mixture.weights == pytest.approx(start.weights)
    assert schedule.phases[-1].mixture.weights == pytest.approx(end.weights)
    for phase in schedule.phases:
        share = Fraction(phase.step, changes * stretch)
        between = {t: float(1 - share) * start.weights[t] + float(share) * end.weights[t] for t in "abc"}
        assert phase.mixture.weights == pytest.approx(between, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"end": Mixture({"a": 1.0})}, r"`end` must have the tasks of `start` \(a, b\), but has a\."),
        ({"changes": 0}, r"`changes` must be in \[1, `steps`\], but is 0\."),
        ({"changes": 101}, r"`changes` must be in \[1, `steps`\], but is 101\."),
    ],
)
def test_a_move_that_cannot_be_made_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        linear_schedule(**{"start": EVEN, "end": ONLY_A, "steps": 100, "changes": 4} | arguments)


def test_a_description_is_plain_and_tells_schedules_apart():
    schedules = [
        Schedule.constant(EVEN),
        Schedule.constant(ONLY_A),
        Schedule((Phase(mixture=EVEN, kept=0.5),)),
        Schedule((Phase(mixture=EVEN, loss_weights={"a": 2.0}),)),
        Schedule((Phase(mixture=EVEN), Phase(mixture=EVEN, step=1))),
        Schedule((Phase(mixture=EVEN), Phase(mixture=EVEN, step=2))),
    ]
    described = [schedule.describe() for schedule in schedules]
    assert json.loads(json.dumps(described)) == described
    assert len({json.dumps(one) for one in described}) == len(schedules)
