"""The number of experts that a token uses, and checks of expert parallelism."""

from __future__ import annotations

from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig


def num_mixtures(config: ModelConfig, layers: int) -> int:
    """Return the number of mixtures of experts in the first `layers` layers of a stack."""
    return sum(config.has_experts(layer) for layer in range(layers))


def expert_matrices(config: ModelConfig) -> int:
    """Return the number of matrices of an expert, each with d_model · d_ff elements."""
    return 2 if config.expert_feed_forward == "relu" else 3


def check_expert_parallel(config: ModelConfig, train: TrainConfig, devices: int) -> None:
    """Check that the experts of `config` can be divided among `devices` by `train`.

    Raises:
        ValueError: If there are no experts, or `expert_parallel` does not divide experts or devices.
    """
    ranks = train.expert_parallel
    if ranks == 1:
        return
    if not config.num_experts:
        raise ValueError(f"`expert_parallel` must be 1 for a dense model, but is {ranks}.")
    experts = config.num_experts
    if experts % ranks:
        raise ValueError(
            f"`num_experts` must be a multiple of `expert_parallel` ({ranks:,}), but is {experts:,}."
        )
    if devices % ranks:
        raise ValueError(
            f"Processes, one a device, must be a multiple of `expert_parallel` ({ranks:,}), "
            f"but are {devices:,}."
        )


def slot_warning(config: ModelConfig) -> str | None:
    """Return a warning about choices without a slot in training, even in perfect balance.

    With k choices a token and slots for `capacity_factor` times the tokens, 1 - capacity_factor / k of the
    choices are dropped.

    Returns:
        The warning; None if there are slots for all choices.
    """
    choices, factor = config.experts_per_token, config.capacity_factor
    if not 0 < factor < choices or not num_mixtures(config, config.most_layers):
        return None
    bound = "up to " if choices == 2 and config.second_expert == "random" else ""
    return (
        f"{bound}{1 - factor / choices:.0%} of the tokens' choices of experts are dropped in training even "
        f"in perfect balance, as `capacity_factor` ({factor:g}) is below `experts_per_token` ({choices}); "
        f"{choices} has slots for all, and 0 sets no limit"
    )


def cuts_replicas(config: ModelConfig, train: TrainConfig, devices: int) -> bool:
    """Return whether devices with the same experts divide the rows of each expert's matrices.

    They do so under FSDP if the rows can be divided evenly.
    """
    replicas = devices // train.expert_parallel
    divides = config.d_model % replicas == config.d_ff % replicas == 0
    return train.parallel == "fsdp" and train.expert_parallel > 1 and replicas > 1 and divides
