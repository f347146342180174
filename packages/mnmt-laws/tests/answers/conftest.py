from __future__ import annotations

import pytest

from mnmt_laws import LawFit, Observations, Perturbation, fit


@pytest.fixture(scope="session")
def joint(clean: Observations) -> LawFit:
    """The joint law of losses without noise, with refits."""
    return fit(clean, uncertainty=Perturbation(refits=30))
