import pytest

from mnmt_model import TrainConfig
from mnmt_model.optim.optimizer import learning_rate


@pytest.mark.parametrize(("step", "rate"), [(1, 0.01), (10_000, 0.01), (40_000, 0.005), (250_000, 0.002)])
def test_the_papers_schedule_is_one_over_root_step(step: int, rate: float) -> None:
    config = TrainConfig(steps=500_000, learning_rate=0.01, constant_steps=10_000)
    assert learning_rate(config, step) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 0.1), (5, 0.5), (10, 1.0), (80, 1.0), (91, 1.0), (96, 0.5), (100, 0.1)]
)
def test_warm_up_and_cool_down_are_lines(step: int, rate: float) -> None:
    config = TrainConfig(steps=100, learning_rate=1.0, warmup_steps=10, cooldown_steps=10)
    assert learning_rate(config, step) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("steps", 0, "`steps` must be at least 1, but is 0."),
        ("learning_rate", 0.0, "`learning_rate` must be above 0, but is 0.0."),
        ("dropout", 1.0, r"`dropout` must be in \[0, 1\), but is 1.0."),
        ("cooldown_steps", 2000, r"`cooldown_steps` must be at most `steps` \(1000\), but is 2000."),
    ],
)
def test_impossible_values_are_refused(field: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**{field: value})
