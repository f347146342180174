import json
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit_scalarization

sizes = st.dictionaries(st.text(max_size=3), st.integers(1, 10**10), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"en-de": 0.5, "en-fr": 0.4}, r"`weights` must sum to 1, but sum to 0\.9\."),
        ({"en-de": 1.00001}, r"`weights` must sum to 1, but sum to 1\.00001\."),
        ({}, r"`weights` must sum to 1, but sum to 0\."),
        ({"en-de": 1.5, "en-fr": -0.5}, r"`weights` must be finite and not negative, but en-fr has -0\.5\."),
        ({"en-de": nan}, r"`weights` must be finite and not negative, but en-de has nan\."),
        ({"en-de": inf}, r"`weights` must be finite and not negative, but en-de has inf\."),
    ],
)
def test_a_wrong_weight_is_named(weights, message):
    with pytest.raises(ValueError, match=message):
        Mixture(weights)


def test_weights_are_kept_as_given():
    third = 1 / 3
    mixture = Mixture({"b": third, "a": third, "c": third})
    assert mixture.weights == {"b": third, "a": third, "c": third}
    assert mixture.tasks == ("b", "a", "c")


@given(sizes, st.floats(0.5, 100))
def test_tempered_weights_are_sizes_to_the_power_of_one_over_t(sizes, temperature):
    powers = {task: size ** (1 / temperature) for task, size in sizes.items()}
    expected = {task: power / sum(powers.values()) for task, power in powers.items()}
    mixture = Mixture.tempered(sizes, temperature)
    assert mixture.weights == pytest.approx(expected, rel=1e-9)
    assert mixture.tasks == tuple(sizes)


@given(sizes)
def test_temperature_one_is_proportional_and_an_infinite_one_even(sizes):
    proportional = {task: size / sum(sizes.values()) for task, size in sizes.items()}
    assert Mixture.proportional(sizes).weights == pytest.approx(proportional)
    assert Mixture.tempered(sizes, 1).weights == Mixture.proportional(sizes).weights
    assert Mixture.tempered(sizes, inf).weights == {task: pytest.approx(1 / len(sizes)) for task in sizes}


@pytest.mark.parametrize(
    ("sizes", "temperature", "message"),
    [
        ({"a": 1}, 0, r"`temperature` must be positive, but is 0\."),
        ({"a": 1}, -1.0, r"`temperature` must be positive, but is -1\.0\."),
        ({"a": 1}, nan, r"`temperature` must be positive, but is nan\."),
        ({"a": 1, "b": 0}, 2, r"`sizes` must be positive, but b has 0\."),
        ({"a": 1, "b": -3}, 2, r"`sizes` must be positive, but b has -3\."),
        ({}, 2, r"`weights` must sum to 1, but sum to 0\."),
    ],
)
def test_what_cannot_be_tempered_is_named(sizes, temperature, message):
    with pytest.raises(ValueError, match=message):
        Mixture.tempered(sizes, temperature)


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
    assert (phase.mixture, phase.step, dict(phase.loss_weights)) == (EVEN, 0, {})


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


def test_a_description_is_plain_and_tells_schedules_apart():
    schedules = [
        Schedule.constant(EVEN),
        Schedule.constant(ONLY_A),
        Schedule((Phase(mixture=EVEN, loss_weights={"a": 2.0}),)),
        Schedule((Phase(mixture=EVEN), Phase(mixture=EVEN, step=1))),
        Schedule((Phase(mixture=EVEN), Phase(mixture=EVEN, step=2))),
    ]
    described = [schedule.describe() for schedule in schedules]
    assert json.loads(json.dumps(described)) == described
    assert len({json.dumps(one) for one in described}) == len(schedules)


def test_ratios_are_divided_by_their_sum():
    assert Mixture.parse("en-de:3, en-fr:1").weights == {"en-de": 0.75, "en-fr": 0.25}


@pytest.mark.parametrize(
    "text", ["", "en-de", "en-de:x", "en-de:1,en-de:2", "en-de:0", "en-de:-1,en-fr:3", "a:nan"]
)
def test_text_that_is_no_mixture_is_refused(text):
    with pytest.raises(ValueError, match=r"must be ratios such as 'en-de:3,en-fr:1', but is "):
        Mixture.parse(text)
