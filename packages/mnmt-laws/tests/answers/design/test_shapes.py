"""Shapes that can be built."""

from __future__ import annotations

import pandas as pd
import pytest

from mnmt_laws.answers.design.shapes import sizes_of


def num_params(d_model: int) -> float:
    """Two layers of width d: 38 d² + 17 d parameters."""
    return 38.0 * d_model**2 + 17.0 * d_model


ROWS = pd.DataFrame(
    {
        "run": [f"d{d}_en-de-0.5_en-zh-0.5_seed1" for d in (12, 16, 24)],
        "size": [num_params(d) for d in (12, 16, 24)],
    }
)
STUDY = {
    "sweep": {"sizes": {f"d{d}": {"d_model": d, "head_dim": d // 2, "d_ff": 4 * d} for d in (12, 16, 24)}}
}


def test_larger_shapes_keep_proportions_and_have_the_parameters_of_their_width() -> None:
    shapes = sizes_of(ROWS, STUDY)
    larger = shapes[3:]
    assert [shape.settings["d_model"] for shape in larger] == [28, 36]
    for shape in larger:
        d_model = shape.settings["d_model"]
        assert shape.settings == {"d_model": d_model, "head_dim": d_model // 2, "d_ff": 4 * d_model}
        assert shape.num_params == pytest.approx(num_params(d_model))


def test_without_a_study_sizes_have_names_only() -> None:
    shapes = sizes_of(ROWS, {})
    assert [shape.name for shape in shapes] == ["d12", "d16", "d24"]
    assert not any(shape.settings for shape in shapes)
