"""Simulated run tables."""

from __future__ import annotations

import pytest

from mnmt_laws import TaskLaw, simulate


def test_simulated_tasks_may_be_any_number() -> None:
    law = TaskLaw(alpha=0.4, beta=100, l_inf=0.5)
    with pytest.raises(ValueError, match="`laws` must hold two tasks for `weights`, but holds 3"):
        simulate(dict.fromkeys("abc", law), sizes=[1e5], weights=[0.5])
