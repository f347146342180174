import math
from typing import Any

import pytest

from mnmt_model import TrainConfig


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("steps", 0, "`steps` must be at least 1, but is 0."),
        ("learning_rate", 0.0, "`learning_rate` must be above 0, but is 0.0."),
        ("learning_rate", math.nan, "`learning_rate` must be above 0, but is nan."),
        (
            "learning_rate",
            math.inf,
            "`learning_rate` must be finite, but is inf.",
        ),
        ("clip_norm", math.nan, "`clip_norm` must be at least 0, but is nan."),
        ("weight_decay", math.inf, "`weight_decay` must be finite, but is inf."),
        ("label_smoothing", math.nan, r"`label_smoothing` must be in \[0, 1\), but is nan."),
        ("warmup_steps", 1001, r"`warmup_steps` must be at most `steps` \(1000\), but is 1001."),
        ("dropout", 1.0, r"`dropout` must be in \[0, 1\), but is 1.0."),
        ("skip_above", 0.5, "`skip_above` must be 0, or finite and above 1, but is 0.5."),
        ("skip_above", math.nan, "`skip_above` must be 0, or finite and above 1, but is nan."),
        ("precision", "float16", "`precision` must be one of float32, tf32, bfloat16, but is float16."),
        ("max_skipped", -1, "`max_skipped` must be at least 0, but is -1."),
        ("cooldown_steps", 2000, r"`cooldown_steps` must be at most `steps` \(1000\), but is 2000."),
    ],
)
def test_impossible_values_are_refused(field: str, value: float | str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**{field: value})


def test_warm_up_and_cool_down_must_not_overlap() -> None:
    message = r"`warmup_steps` \(60\) and `cooldown_steps` \(60\) must be together at most `steps` \(100\)"
    with pytest.raises(ValueError, match=message):
        TrainConfig(steps=100, warmup_steps=60, cooldown_steps=60)


def test_steps_are_the_last_horizon_where_they_are_left_out() -> None:
    config = TrainConfig(horizons=(500, 1000, 2000), cooldown_steps=400)
    assert config.steps == 2000
    assert config.departures == (400, 800)
    assert config.at_horizon(500) == TrainConfig(steps=500, cooldown_steps=100)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"horizons": (50, 200), "steps": 100},
            r"`horizons` must end with `steps` \(100\), but end with 200.",
        ),
        ({"horizons": (200, 100)}, r"`horizons` must rise, the first from 1, but are \[200, 100\]."),
        ({"horizons": (0, 100)}, r"`horizons` must rise, the first from 1, but are \[0, 100\]."),
        ({"horizons": (50, 100), "cooldown_steps": 0}, "`horizons` need `cooldown_steps`"),
        ({"horizons": (20, 100), "warmup_steps": 11}, r"must leave room for `warmup_steps` \(11\) before"),
        (
            {"horizons": (50, 100), "eval_every": 1, "early_stopping": 1},
            "`horizons` and `early_stopping` exclude",
        ),
    ],
)
def test_impossible_horizons_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**{"cooldown_steps": 50, **fields})
