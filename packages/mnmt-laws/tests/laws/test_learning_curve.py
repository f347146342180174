"""A power law of the steps of one run, in place of sizes (Fernandes et al. 2023, App. G)."""

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import fit, observe


def test_a_power_law_of_steps_reads_a_curve_at_a_later_step() -> None:
    steps = np.geomspace(2e4, 1e6, 30)
    curve = pd.DataFrame({"task": "en-de", "weight": 0.05, "step": steps, "value": 2 + 30 * steps**-0.35})
    fitted = fit(observe(curve.assign(run=curve.index.map(str)), columns={"size": "step"}), law="power")
    later = pd.DataFrame({"task": ["en-de"], "weight": 0.05, "size": 2.5e6})
    assert fitted.predict(later)[0] == pytest.approx(2 + 30 * 2.5e6**-0.35, rel=2e-3)
