import pytest

from mnmt_model.planning.quantities import data_size, duration, short, si


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (short(1_019_312_128), "1.02B"),
        (short(18_881_024), "18.9M"),
        (short(999), "999"),
        (si(6.12e9), "6.12 G"),
        (si(1.234e21), "1.23 Z"),
        (duration(0.2), "< 1 s"),
        (duration(45), "45 s"),
        (duration(12 * 60), "12 min"),
        (duration(3.5 * 3600), "3.5 h"),
        (duration(21 * 86_400), "21 days"),
        (data_size(1536), "1.50 KiB"),
        (data_size(80 * 2**30), "80.0 GiB"),
        (data_size(7), "7 B"),
    ],
)
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected
