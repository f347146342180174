"""What devices send each other in a training step: bytes, messages, and the least time that they take.

- tokens: an all-to-all before the experts of a mixture and one after them, in the forward and in the backward
  pass; activation checkpointing does the two forward ones twice. Each moves all slots, filled or not: of R
  devices that hold the experts together each sends (R - 1) / R of them, a message to every other. Where that
  would be twice as many rows, tokens travel instead, each once to every device that has experts of it: with
  k experts' numbers and weights, which have an all-to-all of their own, and after one of the rows' numbers.
- dense gradients: of all but experts that devices hold together. DDP sums them by an all-reduce, FSDP by a
  reduce-scatter, after the last part of a batch.
- dense weights: FSDP gathers a layer before its forward and again before its backward pass, in every part,
  and what belongs to no layer once.
- experts' gradients: an all-reduce over the replicas of the experts; where FSDP cuts their rows, a
  reduce-scatter, and experts' weights are gathered as others are, over the replicas.

Of D devices an all-reduce of n bytes makes each send 2 (D - 1) / D · n, and a gather or a reduce-scatter half
of that, whether around a ring or by halving distances. The latter takes the fewest messages, log2 D for each
half (Thakur et al. 2005, Sec. 4). With α seconds a message and β a byte, m messages of n bytes in all take
α m + β n (Hockney 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnmt_model.planning.experts import SlotUse, cuts_replicas, slot_uses
from mnmt_model.planning.shards import Shards, num_elements, outside_experts
from mnmt_model.planning.tensors import TensorGroup, tensors_in_layers
from mnmt_model.planning.workload import FLOAT32, STATE_BYTES, Workload, num_mixtures, passes
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

BUCKET = 25 * 2**20
"""Bytes of gradients that DDP sums at a time."""

COUNTS = 16
"""Bytes of the numbers of rows and choices that a device announces to another."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What one device sends to others."""

    size: int = 0
    """Bytes."""
    messages: int = 0
    rounds: int = 0
    """Messages that wait for one another; those of an all-to-all can be on their way together."""

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(**{name: value + vars(other)[name] for name, value in vars(self).items()})

    def __mul__(self, times: int) -> Traffic:
        return Traffic(**{name: times * value for name, value in vars(self).items()})

    @property
    def message_size(self) -> float:
        """Bytes of a message, on average."""
        return self.size / self.messages if self.messages else 0.0


@dataclass(frozen=True, kw_only=True)
class StepTraffic:
    """What one device sends to others in a training step, by purpose."""

    tokens: Traffic
    """To the experts and back."""
    dense_gradients: Traffic
    dense_weights: Traffic
    """Under FSDP."""
    expert_gradients: Traffic
    """Over the replicas of the experts."""
    expert_weights: Traffic
    """Over the replicas of the experts, where FSDP cuts the rows of each."""

    def __mul__(self, times: int) -> StepTraffic:
        return StepTraffic(**{part: traffic * times for part, traffic in vars(self).items()})

    @property
    def total(self) -> Traffic:
        """All of it."""
        return sum(vars(self).values(), Traffic())


def step_traffic(
    config: ModelConfig, tensors: Sequence[TensorGroup], train: TrainConfig, workload: Workload
) -> StepTraffic:
    """Return what one device sends to others in a training step.

    Where tokens travel instead of slots, as many are taken to choose each expert: then it is an estimate.

    Args:
        config: The model.
        tensors: Its parameters.
        train: Precision, accumulation, checkpointing and parallelism.
        workload: Lengths of the sentences and number of devices.
    """
    ranks, devices = train.expert_parallel, workload.devices
    handled = outside_experts(tensors, train)
    local_experts = (num_elements(tensors) - num_elements(handled)) // ranks
    is_sharded, replicas = train.parallel == "fsdp", devices // ranks
    is_cut, mixtures = cuts_replicas(config, train, devices), _num_mixtures(config)
    return StepTraffic(
        tokens=_token_traffic(config, train, workload),
        dense_gradients=_scattered(config, handled, train, workload)
        if is_sharded
        else _all_reduced(FLOAT32 * num_elements(handled), devices),
        dense_weights=_gathered(config, handled, train, workload) if is_sharded else Traffic(),
        expert_gradients=_to_all(FLOAT32 * local_experts // replicas, replicas, times=mixtures)
        if is_cut
        else _all_reduced(FLOAT32 * local_experts, replicas),
        expert_weights=_to_all(
            STATE_BYTES[train.precision] * local_experts // replicas, replicas, times=mixtures
        )
        * (_gathers(config, workload) * train.accumulation)
        if is_cut
        else Traffic(),
    )


def largest_exchange(config: ModelConfig, train: TrainConfig, workload: Workload) -> int:
    """Return the most bytes that the buffer of one all-to-all has; 0 where devices do not exchange tokens."""
    if train.expert_parallel == 1:
        return 0
    return max((_row_bytes(config, train, use) for use in slot_uses(config, train, workload)), default=0)


def _token_traffic(config: ModelConfig, train: TrainConfig, workload: Workload) -> Traffic:
    ranks = train.expert_parallel
    times = 2 if train.activation_checkpointing else 1
    result = Traffic()
    for use in slot_uses(config, train, workload) if ranks > 1 else ():
        forward, backward = _mixture_traffic(config, train, use)
        result += (forward * times + backward) * (use.mixtures * train.accumulation)
    return result


def _mixture_traffic(config: ModelConfig, train: TrainConfig, use: SlotUse) -> tuple[Traffic, Traffic]:
    """Return the traffic of a mixture in a forward and in a backward pass."""
    ranks = train.expert_parallel
    if use.rows_per_token is None:
        chunks = min(train.exchange_chunks, use.slots // config.num_experts)
        both = _all_to_all(_row_bytes(config, train, use), ranks, chunks=chunks) * 2
        return both, both
    states = _all_to_all(_row_bytes(config, train, use), ranks) * 2
    choices = 1 if use.expert_choice else config.experts_per_token
    numbers = _all_to_all(FLOAT32 * 2 * choices * _num_rows(use), ranks)
    forward = _all_to_all(COUNTS * ranks, ranks) + numbers + states
    return forward, states if use.expert_choice else numbers + states


def _all_to_all(size: int, ranks: int, *, chunks: int = 1) -> Traffic:
    """Return the traffic of an all-to-all of `size` bytes, those for the device itself among them."""
    return Traffic(size=size * (ranks - 1) // ranks, messages=chunks * (ranks - 1), rounds=chunks)


def _row_bytes(config: ModelConfig, train: TrainConfig, use: SlotUse) -> int:
    """Return the bytes of the states that an all-to-all moves."""
    return _num_rows(use) * config.d_model * STATE_BYTES[train.precision]


def _num_rows(use: SlotUse) -> int:
    return use.slots if use.rows_per_token is None else round(use.tokens * use.rows_per_token)


def _all_reduced(size: int, devices: int) -> Traffic:
    """Return the traffic of summing `size` bytes of gradients over devices that all get the sums."""
    rounds = -(-size // BUCKET) * 2 * _halvings(devices)
    return Traffic(size=2 * size * (devices - 1) // devices, messages=rounds, rounds=rounds)


def _scattered(
    config: ModelConfig, handled: Sequence[TensorGroup], train: TrainConfig, workload: Workload
) -> Traffic:
    """Return the traffic of summing gradients, of which each device gets its part: layer by layer."""
    size = FLOAT32 * Shards.of(config, train, workload).elements(handled)
    return _to_all(size, workload.devices, times=_num_layers(config) + 1)


def _gathered(
    config: ModelConfig, handled: Sequence[TensorGroup], train: TrainConfig, workload: Workload
) -> Traffic:
    """Return the traffic of gathering weights, in `precision`: layer by layer, twice a pass, and the rest."""
    shards, state = Shards.of(config, train, workload), STATE_BYTES[train.precision]
    in_layers = shards.elements(outside_experts(tensors_in_layers(config), train))
    rest = shards.elements(handled) - in_layers
    times = _gathers(config, workload)
    layers = _to_all(state * in_layers, workload.devices, times=_num_layers(config)) * times
    return (layers + _to_all(state * rest, workload.devices, times=1)) * train.accumulation


def _gathers(config: ModelConfig, workload: Workload) -> int:
    """Return how often the weights of a layer are gathered in a part: before both passes through it."""
    stacks = passes(config, src_len=workload.src_len, tgt_len=workload.tgt_len)
    return 2 * (len(stacks) if config.is_language_model else 1)


def _num_mixtures(config: ModelConfig) -> int:
    """Return the number of mixtures of experts."""
    return num_mixtures(config, config.num_encoder_layers) + num_mixtures(config, config.decoder_layers)


def _to_all(size: int, devices: int, *, times: int) -> Traffic:
    """Return the traffic of bringing each device's part, of `size` bytes, to all others in so many gathers.

    A reduce-scatter sends as much.
    """
    rounds = times * _halvings(devices)
    return Traffic(size=size * (devices - 1), messages=rounds, rounds=rounds)


def _halvings(devices: int) -> int:
    """Return log2 of the devices, rounded up."""
    return (devices - 1).bit_length()


def _num_layers(config: ModelConfig) -> int:
    return config.num_encoder_layers + config.decoder_layers
