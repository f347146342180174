from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.sweep.schedule import Job, wall_seconds

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


def test_a_branch_waits_for_its_place_on_the_trunk() -> None:
    trunk = Job(name="trunk", seconds=10)
    branch = Job(name="branch", seconds=2, after="trunk", share=0.9)
    assert wall_seconds([trunk, branch], 2) == 11
    assert wall_seconds([trunk, branch], 1) == 12
    assert wall_seconds([branch], 1) == 2  # its trunk has been trained
