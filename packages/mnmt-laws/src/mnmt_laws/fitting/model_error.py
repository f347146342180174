"""The law's own error beyond the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.law_fit import LawFit


def model_error(fit: LawFit, task: str, at: Mapping[str, Array]) -> Array:
    """Return (n,) the variance of the law's own error beyond the data, as a multiple of the noise's."""
    rows, total = fit.rows[fit.rows["task"] == task], np.zeros(1)
    for test in back_tests(fit):
        values = at.get(test.left_out)
        if values is None or not test.excess:
            continue
        observed = rows[test.left_out]
        distance = np.maximum(np.log(values / observed.max()), np.log(observed.min() / values))
        total = total + test.excess * (np.maximum(distance, 0.0) / np.log(test.reach)) ** 2
    return total
