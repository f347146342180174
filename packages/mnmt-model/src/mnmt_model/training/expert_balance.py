"""Losses over a batch and state of gates that balance the experts of a model."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_model.distributed.copies import to_device
from mnmt_model.distributed.world import World
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.experts.routes import Balance
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.translation_model import TranslationModel


class ExpertBalance:
    """Computes the losses of a model's gates, and updates their state besides weights.

    A batch is computed in parts, by one process or several. The losses of a part are scaled so that their
    mean over all parts of all processes is the loss of the batch.

    Args:
        model: The model.
        config: How it is trained.
        world: The processes, each of which calls every method.
    """

    def __init__(self, model: TranslationModel, config: TrainConfig, world: World) -> None:
        self.model, self.config, self.world, self.ranks = model, config, world, model.expert_ranks
        self.gates = [mixture.gate for mixture in model.mixtures]
        self.start(src_tokens=1, tgt_tokens=1)

    def start(self, *, src_tokens: int, tgt_tokens: int) -> None:
        """Start a step, given the tokens of its whole batch."""
        tokens = _tokens_by_mixture(self.model.config, src_tokens=src_tokens, tgt_tokens=tgt_tokens)
        self._tokens = to_device(torch.tensor(tokens, dtype=torch.float64), self.world.device)[:, None]
        shape = (len(self.gates), self.model.config.num_experts)
        self._counts, self._load = self._tokens.new_zeros(2, *shape).unbind()

    def auxiliary(self, balance: Balance, *, is_empty: bool) -> Tensor:
        """Return the auxiliary loss of a part, summed over layers.

        Over the batch it is E Σ_e f_e m_e (Qiu et al. 2025), where m_e is the mean gate of all tokens, and
        f_e the share of choices by all processes in the parts computed so far. With one part for each process
        this is the loss of the whole batch.

        Args:
            balance: The part's use of experts.
            is_empty: Whether the part has no pairs, and so no weight.
        """
        if self.config.auxiliary_loss_over == "group":
            return balance.auxiliary * (not is_empty)
        self._counts = self._counts + self.world.sum(balance.counts.double() * (not is_empty))
        shares = self._counts / self._counts.sum(dim=1, keepdim=True).clamp(min=1)
        weights = self._parts(is_empty) * shares.size(1) * shares / self._tokens
        return (weights.float() * balance.gate_sums).sum()

    def z_loss(self, balance: Balance, *, is_empty: bool) -> Tensor:
        """Return the z-loss of a part, summed over layers: the mean of (log Σ_e exp z_e)² over tokens.

        z are a token's logits (Zoph et al. 2022, ST-MoE, eq. 5).
        """
        weights = self._parts(is_empty) / self._tokens.squeeze(1)
        return (weights.float() * balance.log_squares).sum()

    def _parts(self, is_empty: bool) -> int:
        """Return the number of parts of all processes, or 0 for an empty part."""
        return 0 if is_empty else self.world.size * self.config.accumulation

    def add(self, balance: Balance) -> None:
        """Add a non-empty part to the sums of this process."""
        if self.config.balance_bias_rate:
            self._load = self._load + balance.load.sum(dim=1)

    def update(self, accepted: Tensor) -> None:
        """Update the gates' biases if a step is accepted.

        Args:
            accepted: Boolean scalar.
        """
        if not self.config.balance_bias_rate:
            return
        # Equal loads leave the biases as they are.
        loads = self.world.sum(self._load * accepted).float()
        for gate, load in zip(self.gates, loads, strict=True):
            gate.balance(load, rate=self.config.balance_bias_rate)


def _tokens_by_mixture(config: ModelConfig, *, src_tokens: int, tgt_tokens: int) -> list[int]:
    """Return the tokens of a batch in each mixture, the encoder's mixtures first."""
    decoder = sum(map(config.has_experts, range(config.decoder_layers)))
    if config.is_language_model:
        return [src_tokens + tgt_tokens] * decoder
    encoder = sum(map(config.has_experts, range(config.num_encoder_layers)))
    return [src_tokens] * encoder + [tgt_tokens] * decoder
