from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

import pytest

from mnmt_data.study import Ranges, check_ranges


@dataclass
class Numbers:
    RANGES: ClassVar[Ranges] = {
        "[1, 10000]": ("count",),
        "[0, inf)": ("factor",),
        "(0, 1]": ("share",),
        "(-inf, inf)": ("threshold",),
        "[1, inf]": ("temperature",),
        "(0, 2.5)": ("rate",),
    }

    count: int = 1
    factor: float = 0.0
    share: float | None = None
    threshold: float = -3.0
    temperature: float = inf
    rate: float = 1.0
    column: int | str = ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 0}, "`count` must be at least 1, but is 0."),
        ({"count": 100_000}, "`count` must be at most 10,000, beyond reason, but is 100,000."),
        ({"factor": -0.5}, "`factor` must be at least 0, but is -0.5."),
        ({"factor": inf}, "`factor` must be finite, but is inf."),
        ({"factor": nan}, "`factor` must be at least 0, but is nan."),
        ({"share": 0}, "`share` must be in (0, 1], but is 0."),
        ({"share": 1.5}, "`share` must be in (0, 1], but is 1.5."),
        ({"threshold": nan}, "`threshold` must be finite, but is nan."),
        ({"threshold": -inf}, "`threshold` must be finite, but is -inf."),
        ({"temperature": 0.5}, "`temperature` must be at least 1, but is 0.5."),
        ({"rate": 0.0}, "`rate` must be above 0, but is 0.0."),
        ({"rate": 2.5}, "`rate` must be below 2.5, beyond reason, but is 2.5."),
    ],
)
def test_numbers_outside_are_named(changes, message):
    with pytest.raises(ValueError, match="must be") as error:
        check_ranges(Numbers(**changes), beyond="beyond reason")
    assert str(error.value) == message


@pytest.mark.parametrize("changes", [{}, {"count": 10_000}, {"share": 1.0}, {"factor": 1e300}])
def test_numbers_inside_pass(changes):
    check_ranges(Numbers(**changes))
