import re
from typing import Any

import pytest

from mnmt_model.sweep.idle_keys import check_idle_keys
from mnmt_model.sweep.sizes import Size
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

TRAIN_FIELDS = TrainConfig.__dataclass_fields__


def make_sizes(shared: dict[str, Any], **sizes: dict[str, Any]) -> dict[str, Size]:
    """Return sizes of two layers, as a study has them whose [model] and [train] have the keys of `shared`."""
    return {name: make_size({"decoder_layers": 2} | shared, changes) for name, changes in sizes.items()}


def make_size(shared: dict[str, Any], changes: dict[str, Any]) -> Size:
    settings = shared | changes
    train = {key: value for key, value in settings.items() if key in TRAIN_FIELDS}
    model = {key: value for key, value in settings.items() if key not in TRAIN_FIELDS}
    return Size(changes=changes, model=ModelConfig(**model), train=TrainConfig(**train))


IDLE = [
    ("model", {"experts_per_token": 4}),
    ("model", {"expert_feed_forward": "gated-silu"}),
    ("model", {"shared_experts": 2}),
    ("model", {"expert_choice": True}),
    ("model", {"second_expert": "always"}),
    ("train", {"auxiliary_loss_over": "batch"}),
    ("train", {"router_z_loss": 0.001}),
    ("train", {"balance_bias_rate": 0.001}),
    ("train", {"uniform_routing_steps": 5}),
    ("model", {"capacity_factor": 1.25}),
    ("model", {"renormalise": "after"}),
]


@pytest.mark.parametrize(("table", "keys"), IDLE)
def test_a_key_of_mixtures_needs_one(table: str, keys: dict[str, Any]) -> None:
    message = f"`{next(iter(keys))}` needs `num_experts` above 0, but that is 0."
    with pytest.raises(ValueError, match=re.escape(f"[sweep.sizes.small] {message}")):
        check_idle_keys(make_sizes({}, small=keys, large={"num_experts": 8}))
    with pytest.raises(ValueError, match=re.escape(f"[{table}] {message}")):
        check_idle_keys(make_sizes(keys, small={}, large={"d_ff": 512}))


@pytest.mark.parametrize(("table", "keys"), IDLE)
def test_dense_sizes_share_keys_with_mixtures(table: str, keys: dict[str, Any]) -> None:
    check_idle_keys(make_sizes(keys, dense={}, mixture={"num_experts": 8}))
    check_idle_keys(make_sizes(keys | {"num_experts": 8}, dense={"num_experts": 0}, mixture={}))
    # What a size takes back from the table says nothing wrong.
    default = {key: getattr(getattr(make_size({}, {}), table), key) for key in keys}
    check_idle_keys(make_sizes(keys, dense=default, mixture={"num_experts": 8}))


def test_weight_decay_needs_adamw() -> None:
    message = '`weight_decay` needs `optimizer = "adamw"`, but that is "adafactor".'
    with pytest.raises(ValueError, match=re.escape(f"[train] {message}")):
        check_idle_keys(make_sizes({"weight_decay": 0.1}, small={}, large={}))
    with pytest.raises(ValueError, match=re.escape(f"[sweep.sizes.large] {message}")):
        check_idle_keys(make_sizes({}, small={}, large={"weight_decay": 0.1}))
    check_idle_keys(make_sizes({"weight_decay": 0.1}, small={}, large={"optimizer": "adamw"}))


def test_a_dense_study_may_have_an_auxiliary_loss() -> None:
    check_idle_keys(make_sizes({"auxiliary_loss": 0.1}, small={}, large={"auxiliary_loss": 0.2}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"experts_every": 3},
            "`experts_every` must be at most the layers of the deeper stack (2), or no layer has experts, "
            "but is 3.",
        ),
        (
            {"uniform_routing_steps": 11, "steps": 10},
            "`uniform_routing_steps` must be at most `steps`, or the first of `horizons` (10), but is 11.",
        ),
        (
            {"uniform_routing_steps": 11, "horizons": (10, 100), "cooldown_steps": 10},
            "`uniform_routing_steps` must be at most `steps`, or the first of `horizons` (10), but is 11.",
        ),
        (
            {"second_expert": "always", "experts_per_token": 4},
            "`second_expert` needs `experts_per_token` 2, but that is 4.",
        ),
    ],
)
def test_a_mixture_that_is_none_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"[sweep.sizes.large] {message}")):
        check_idle_keys(make_sizes({}, small={}, large={"num_experts": 8, **changes}))


def test_one_deep_stack_is_enough_for_mixtures() -> None:
    sizes = make_sizes({"num_experts": 8, "experts_every": 3}, deep={"encoder_layers": 3})
    check_idle_keys(sizes)
    check_idle_keys(make_sizes({"experts_every": 3}, dense={"d_ff": 64}))
