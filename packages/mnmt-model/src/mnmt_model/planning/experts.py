"""The experts that a token passes, and the slots that experts compute, filled or not.

In training an expert has C slots for the tokens that a device computes at a time, and a layer E · C, of
which each token fills k at most. C is rounded up to a multiple of four, so few tokens leave most slots empty.
Without a limit (`capacity_factor` 0) there are as many slots as choices. Experts that choose their tokens
fill all.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.planning.workload import Pass, Workload, num_mixtures, passes
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.experts.travel import rows_per_token, sends_tokens
from mnmt_model.transformer.model_config import ModelConfig


def expert_matrices(config: ModelConfig) -> int:
    """Return the number of an expert's matrices, each of d_model · d_ff elements."""
    return 2 if config.expert_feed_forward == "relu" else 3


def mean_choices(config: ModelConfig, *, expert_choice: bool = False) -> float:
    """Return the experts of a mixture that a token passes, besides shared ones, before any choice is dropped.

    Args:
        config: The model.
        expert_choice: Whether the experts choose their tokens, `capacity_factor` experts a token on average,
            or all.
    """
    if not expert_choice:
        return config.experts_per_token
    return min(config.capacity_factor, config.num_experts)


def expert_slots(config: ModelConfig, tokens: int, *, expert_choice: bool = False) -> int:
    """Return the slots of all experts of a layer in training, for the tokens of one device."""
    if not config.capacity_factor:
        return config.experts_per_token * tokens
    capacity = config.expert_capacity(tokens, config.capacity_factor)
    return config.num_experts * (min(capacity, tokens) if expert_choice else capacity)


def filled_slots(config: ModelConfig, tokens: int, *, expert_choice: bool = False) -> int:
    """Return the most slots of a layer that tokens can fill: all, or one for each of their choices."""
    slots = expert_slots(config, tokens, expert_choice=expert_choice)
    return slots if expert_choice else min(slots, config.experts_per_token * tokens)


def computes_filled_slots(train: TrainConfig, *, on_gpu: bool) -> bool:
    """Return whether empty slots are left out, as on a CPU that has all experts and compiles nothing."""
    return not on_gpu and train.expert_parallel == 1 and not train.compile


def check_expert_parallel(config: ModelConfig, train: TrainConfig, devices: int) -> None:
    """Check that `devices` can hold the experts of `config` together as `train` says.

    Raises:
        ValueError: If there are no experts, or `expert_parallel` does not divide them or the devices.
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
    """Return a sentence on choices of tokens that have no slot in training, however even they are.

    Of k choices a token, slots for `capacity_factor` times the tokens leave 1 - capacity_factor / k without.

    Returns:
        None where there are slots for all, or only experts choose.
    """
    choices, factor = config.experts_per_token, config.capacity_factor
    layers = config.decoder_layers if config.expert_choice else config.most_layers
    if not 0 < factor < choices or not num_mixtures(config, layers):
        return None
    bound = "up to " if choices == 2 and config.second_expert == "random" else ""
    return (
        f"{bound}{1 - factor / choices:.0%} of the tokens' choices of experts are dropped in training even "
        f"in perfect balance, as `capacity_factor` ({factor:g}) is below `experts_per_token` ({choices}); "
        f"{choices} has slots for all, and 0 sets no limit"
    )


def cuts_replicas(config: ModelConfig, train: TrainConfig, devices: int) -> bool:
    """Return whether devices that hold the same experts cut the rows of each expert's matrices among them.

    They do under FSDP, where they can be cut evenly.
    """
    replicas = devices // train.expert_parallel
    divides = config.d_model % replicas == config.d_ff % replicas == 0
    return train.parallel == "fsdp" and train.expert_parallel > 1 and replicas > 1 and divides


@dataclass(frozen=True, kw_only=True)
class SlotUse:
    """The slots of one mixture in training, for the tokens of a device that pass it together."""

    tokens: int
    mixtures: int
    """Mixtures of the pass, all alike."""
    slots: int
    """Slots of all experts."""
    filled_slots: int
    """The most of them that tokens can fill; fewer if some experts are chosen more often than others."""
    executed_slots: int
    """The slots that are computed: all, or those that are filled."""
    rows_per_token: float | None
    """Where tokens travel instead of slots, the rows that leave for each, on average; otherwise None. See
    `assumes_even_choices`."""
    expert_choice: bool
    """Whether the experts choose their tokens; then one choice travels with such a row, and no gradient of
    its weight comes back."""

    @property
    def filled(self) -> float:
        """The largest share of the slots that tokens can fill."""
        return self.filled_slots / self.slots

    @property
    def used(self) -> float:
        """The largest share of the slots that are computed which tokens can fill."""
        return self.filled_slots / self.executed_slots

    @property
    def assumes_even_choices(self) -> bool:
        """Whether the rows that travel are a mean, as if all experts were chosen equally often.

        Experts that choose take as many tokens each, so that their rows are known.
        """
        return self.rows_per_token is not None and not self.expert_choice


def slot_uses(config: ModelConfig, train: TrainConfig, workload: Workload) -> tuple[SlotUse, ...]:
    """Return the slots of the mixtures of each pass that has any."""
    stacks = passes(config, src_len=workload.src_len, tgt_len=workload.tgt_len)
    return tuple(_slot_use(config, train, workload, each) for each in stacks if each.mixtures)


def _slot_use(config: ModelConfig, train: TrainConfig, workload: Workload, stack: Pass) -> SlotUse:
    tokens, expert_choice = workload.pairs(train) * stack.tokens, stack.expert_choice
    slots = expert_slots(config, tokens, expert_choice=expert_choice)
    filled = filled_slots(config, tokens, expert_choice=expert_choice)
    travel = tokens_travel(config, train, tokens, expert_choice=expert_choice)
    # Where experts choose, a token is a row for each of them.
    rows = slots / tokens if expert_choice else rows_per_token(config, ranks=train.expert_parallel)
    computes_filled = travel or computes_filled_slots(train, on_gpu=workload.on_gpu)
    return SlotUse(
        tokens=tokens,
        mixtures=stack.mixtures,
        slots=slots,
        filled_slots=filled,
        executed_slots=filled if computes_filled else slots,
        rows_per_token=rows if travel else None,
        expert_choice=expert_choice,
    )


def tokens_travel(
    config: ModelConfig, train: TrainConfig, tokens: int, *, expert_choice: bool = False
) -> bool:
    """Return whether devices send each other tokens, and not slots, for so many tokens of each."""
    ranks, factor = train.expert_parallel, config.capacity_factor
    if expert_choice or not factor:
        return ranks > 1
    capacity = config.expert_capacity(tokens, factor)
    return sends_tokens(config, ranks=ranks, chunks=train.exchange_chunks, tokens=tokens, capacity=capacity)
