"""What exponents follow and how curves bend, against exact laws and one regression of all columns."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import ResidualBootstrap, fit
from mnmt_laws.fitting.noise import measure_noise

SIZES = np.array([2e3, 5e3, 9e3, 21e3, 37e3])


def losses(exponent):
    """Return exact power laws, α of each weight and length by a function, β different everywhere."""
    cells = product((0.05, 0.3, 1.0), (500, 2000, 8000), SIZES, (1, 2))
    rows = pd.DataFrame(cells, columns=["weight", "step", "size", "seed"]).assign(task="xx-aa")
    beta = 3.0 / rows["weight"] / np.sqrt(rows["step"])
    alpha = exponent(rows["weight"], rows["step"])
    return rows.assign(reducible=beta * rows["size"] ** -alpha, mixture=rows["weight"].astype(str))


@pytest.mark.parametrize(("of_weight", "of_exposure"), [(0.0, 0.13), (0.1, 0.0), (-0.04, 0.15)])
def test_a_regression_finds_what_the_exponent_follows(analysis, of_weight, of_exposure):
    def exponent(weight, step):
        return 0.2 + of_weight * np.log(weight) + of_exposure * np.log(weight * step / 100)

    exponents = analysis("splitting.exponents")
    curves = exponents.as_curves(losses(exponent))
    slopes, _ = exponents.regress(curves, ("weight", "exposure"))
    assert slopes["weight"][0] == pytest.approx(of_weight, abs=1e-9)
    assert slopes["exposure"][0] == pytest.approx(of_exposure, abs=1e-9)


def test_a_common_square_is_that_of_a_regression_with_lines_of_each_curve(analysis):
    rng, x = np.random.default_rng(0), np.log(SIZES)
    curves = [np.array([x, 2.0 - slope * x - 0.01 * x**2 + rng.normal(0, 0.01, 5)]) for slope in (0.1, 0.3)]
    blocks = np.kron(np.eye(2), np.column_stack([np.ones(5), x]))
    design, y = np.column_stack([blocks, np.tile(x**2, 2)]), np.concatenate([y for _, y in curves])
    values, squares, *_ = np.linalg.lstsq(design, y, rcond=None)
    error = np.sqrt(squares[0] / (len(y) - 5) * np.linalg.inv(design.T @ design)[-1, -1])
    answer = analysis("real_text.exposure").bends(curves)
    assert answer["t of a square"] == pytest.approx(values[-1] / error, rel=1e-6)
    assert answer["downwards"] == 2


@pytest.mark.parametrize("common", [0.0, 0.05])
def test_means_over_seeds_are_held_to_the_scatter_of_seeds_about_an_exact_law(analysis, common):
    rng, noise = np.random.default_rng(0), 0.01
    rows = pd.DataFrame(product((0.1, 0.3, 0.5, 1.0), SIZES), columns=["weight", "size"])
    rows = rows.assign(task="xx-aa", mixture=[f"xx-aa:{p},xx-bb:{1 - p:g}" for p in rows["weight"]], step=100)
    off = common * rng.choice([-1, 1], len(rows))
    law = 1.0 + 30 * (rows["weight"] * rows["size"]) ** -0.4  # f(p) = p, by eq. 12 and by eq. 13
    runs = pd.concat(rows.assign(seed=sign, value=law * np.exp(off + sign * noise)) for sign in (-1, 1))

    def longest(law, testset):
        return fit(runs, law=law, metric="loss", uncertainty=ResidualBootstrap(refits=0))

    fits = SimpleNamespace(pair=SimpleNamespace(name="made"), longest=longest)
    for answer in analysis("real_text.laws").lack_of_fit(fits):
        assert answer["seeds"] == pytest.approx(np.sqrt(2) * noise)
        assert (answer["off"] < 1e-4, answer["F"] < 0.1, answer["p"] > 0.01) == (common == 0,) * 3
        assert answer["p"] == pytest.approx(measure_noise(longest(answer["law"], ""), "xx-aa").lack_of_fit)
