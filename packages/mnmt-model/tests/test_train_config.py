import math

import pytest

from mnmt_model import TrainConfig


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("steps", 0, "`steps` must be at least 1, but is 0."),
        ("learning_rate", 0.0, "`learning_rate` must be above 0, but is 0.0."),
        ("dropout", 1.0, r"`dropout` must be in \[0, 1\), but is 1.0."),
        ("skip_above", 0.5, "`skip_above` must be 0 or above 1, but is 0.5."),
        ("skip_above", math.nan, "`skip_above` must be 0 or above 1, but is nan."),
        ("max_skipped", -1, "`max_skipped` must be at least 0, but is -1."),
        ("cooldown_steps", 2000, r"`cooldown_steps` must be at most `steps` \(1000\), but is 2000."),
    ],
)
def test_impossible_values_are_refused(field: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**{field: value})
