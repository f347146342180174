import pytest

from mnmt_model.sweep.cluster_config import ClusterConfig


@pytest.mark.parametrize("name", ["nodes", "processes", "cpus_per_task", "minutes"])
def test_numbers_below_1_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is 0"):
        ClusterConfig(**{name: 0})


def test_no_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="`memory` must be above 0"):
        ClusterConfig(memory=0.0)
