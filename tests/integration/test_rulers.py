"""Rulers find what lies on a line of log axes, and nothing beyond the weights trained."""

import itertools

import numpy as np
import pandas as pd
import pytest

ENTROPY = 0.2


@pytest.fixture
def rulers(analysis):
    return analysis("rulers")


@pytest.fixture
def fitted():
    places = itertools.product((0.2, 0.4, 0.8), (1e3, 4e3, 9e3), (100, 200))
    rows = pd.DataFrame(places, columns=["weight", "size", "step"]).assign(irreducible=ENTROPY)
    return rows.assign(value=loss(rows))


def loss(rows):
    return ENTROPY + 3 * rows["weight"] ** -0.5 * rows["size"] ** -0.3 * rows["step"] ** -0.1


@pytest.mark.parametrize(
    ("weight", "size", "step"), [(0.2, 2e4, 200), (0.4, 4e3, 800), (0.6, 4e3, 100), (0.3, 5e4, 400)]
)
def test_a_power_law_is_continued_along_every_axis(rulers, fitted, weight, size, step):
    new = pd.DataFrame({"weight": [weight], "size": [size], "step": [step]})
    assert rulers.ruler(fitted, next(new.itertuples())) == pytest.approx(loss(new).iloc[0], rel=1e-9)


def test_a_weight_beyond_those_trained_has_no_prediction(rulers, fitted):
    new = pd.DataFrame({"weight": [0.9], "size": [1e3], "step": [100]})
    assert np.isnan(rulers.ruler(fitted, next(new.itertuples())))


@pytest.mark.parametrize("place", [1, 5, 11])  # on an edge, inside, on another edge
def test_depths_on_a_plane_of_log_axes_are_found_by_both_rulers(analysis, place):
    grid = analysis("encoder_decoder.grid")
    sizes = itertools.product((1e4, 2e4, 4e4, 6e4), repeat=2)
    rows = pd.DataFrame(sizes, columns=grid.SIZES).assign(task="en-de", weight=0.5, metric="loss")
    rows["value"] = 30 * rows["encoder_size"] ** -0.1 * rows["decoder_size"] ** -0.2
    expected = rows["value"].iloc[place]
    predicted = grid.predict(rows.assign(size=rows[grid.SIZES].sum(axis=1)), place)
    assert predicted["line"] == pytest.approx(expected, rel=1e-9)
    assert predicted["interpolation"] == pytest.approx(expected, rel=1e-9)
    assert predicted["bivariate"] == pytest.approx(expected, rel=1e-3)
