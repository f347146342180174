"""Pictures of experts, read back as the page reads them."""

from __future__ import annotations

import base64

import numpy as np

from mnmt_eval.analysis.experts import expert_use
from mnmt_eval.report.pictures import EVEN, NONE, STEPS, pictures, short_names
from mnmt_model.runs import ExpertLoads


def test_ratios_are_those_of_the_shares_to_half_a_step() -> None:
    rng = np.random.default_rng(4)
    loads = rng.poisson(rng.gamma(0.5, 20.0, size=(2, 6, 9)), size=(20, 2, 6, 9))
    loads[:, 1, :, 3] = 0  # an expert that nobody uses
    loads[:, 1, 2, 5] = 0  # one that some task does not
    tasks = tuple(f"en-{language}" for language in "abcdef")
    experts = ExpertLoads(step=1, tasks=tasks, loads=loads)
    use = expert_use(experts, ["encoder 2", "decoder 2"], run="ours", testset="test")
    for picture, layer in zip(pictures([use]), use.layers, strict=True):
        assert picture.name == f"{layer.name}, ours"
        coded = np.frombuffer(base64.b64decode(picture.ratios), dtype=np.uint8).reshape(6, 9).astype(float)
        shares = np.array(layer.shares)
        ratios = shares / np.maximum(shares.mean(axis=0), 1e-9)
        assert ((coded == NONE) == (ratios == 0)).all()
        some = ratios > 2.0 ** (-7)
        read = 2 ** ((coded - EVEN) / STEPS)
        np.testing.assert_allclose(read[some], ratios[some], rtol=2 ** (0.5 / STEPS) - 1 + 1e-9)


def test_names_of_runs_are_short_where_they_still_differ() -> None:
    runs = ["moe_a-b-0.5_a-c-0.5_seed1", "moe_a-b-0.5_a-c-0.5_seed2", "mine"]
    assert short_names(runs) == ["moe seed1", "moe seed2", "mine"]
    runs.append("moe_a-b-0.3_a-c-0.7_seed1")
    assert short_names(runs) == runs
