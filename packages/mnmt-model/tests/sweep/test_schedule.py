import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.errors import RunError
from mnmt_model.sweep.schedule import Job, Machines, wall_seconds

times = st.lists(st.floats(0.1, 100), min_size=1, max_size=12)


def jobs_of(seconds: list[float]) -> list[Job]:
    return [Job(name=str(number), seconds=time) for number, time in enumerate(seconds)]


@given(seconds=times, places=st.integers(1, 5))
def test_the_wall_time_lies_between_the_bounds_of_any_greedy_schedule(
    seconds: list[float], places: int
) -> None:
    wall = wall_seconds(jobs_of(seconds), places)
    least = max(*seconds, sum(seconds) / places, 0.0)
    assert least <= wall * (1 + 1e-9)
    assert wall <= (sum(seconds) / places + max(seconds) * (1 - 1 / places)) * (1 + 1e-9)


def test_one_place_takes_the_sum_and_enough_places_the_longest() -> None:
    jobs = jobs_of([3.0, 1.0, 2.0])
    assert wall_seconds(jobs, 1) == 6
    assert wall_seconds(jobs, 2) == 3
    assert wall_seconds(jobs, 9) == 3


def test_a_branch_waits_for_its_place_on_the_trunk() -> None:
    trunk = Job(name="trunk", seconds=10)
    branch = Job(name="branch", seconds=2, after="trunk", share=0.9)
    assert wall_seconds([trunk, branch], 2) == 11
    assert wall_seconds([trunk, branch], 1) == 12
    assert wall_seconds([branch], 1) == 2  # its trunk has been trained


@pytest.mark.parametrize(
    ("machines", "devices", "places"),
    [
        (Machines(), 1, 8),
        (Machines(), 2, 4),
        (Machines(jobs=3), 2, 3),
        (Machines(nodes=4, devices_per_node=8), 3, 8),  # two runs a machine, not ten over all
        (Machines(nodes=4, devices_per_node=8), 16, 2),
    ],
)
def test_places_of_some_machines(machines: Machines, devices: int, places: int) -> None:
    assert machines.places(devices, local_devices=8) == places


def test_impossible_machines_are_refused() -> None:
    with pytest.raises(RunError, match="`nodes` must be at least 1, but is 0"):
        Machines(nodes=0).check()
    with pytest.raises(RunError, match="`devices` must be at most the 8 of all nodes, but is 9"):
        Machines(nodes=2, devices_per_node=4).places(9, local_devices=1)
