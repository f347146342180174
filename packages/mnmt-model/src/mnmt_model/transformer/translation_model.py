"""The base class of all architectures: embeddings, softmax and loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.transformer.attention import KeysValues
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK, ExpertRanks
from mnmt_model.transformer.experts.routes import Routes, RoutingContext
from mnmt_model.transformer.loss import Losses, softmax_loss
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Linear, table_rows
from mnmt_model.transformer.positions import sinusoids
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """States from which tokens are predicted: of the targets, then of the sources if they are predicted."""

    states: Tensor
    """`(n, d_model)`."""
    tokens: Tensor
    """`(n,)` int64, the tokens to predict."""
    pairs: Tensor
    """`(n,)` int64, the pair of each token."""


class TranslationModel(nn.Module, ABC):
    """A Transformer that translates; each subclass is an architecture.

    Args:
        config: Architecture, widths and parts.
        vocab_size: Size of the target's vocabulary, and of the source's unless given.
        src_vocab_size: Size of the source's vocabulary, if the source has a separate embedding.
        dropout: The rate.
        dtype: Precision of the states; weights are float32.
        ranks: The processes that hold the model's experts, if it has any.

    Raises:
        ValueError: If the source's vocabulary has another size, but the source has no separate embedding, or
            is predicted too.
    """

    def __init__(
        self,
        config: ModelConfig,
        vocab_size: int,
        *,
        src_vocab_size: int | None = None,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
        ranks: ExpertRanks = SINGLE_RANK,
    ) -> None:
        super().__init__()
        self.config, self.vocab_size, self.dtype = config, vocab_size, dtype
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        has_src_embedding = config.embeddings in ("separate", "tied-target")
        if src_vocab_size not in (None, vocab_size) and (config.predicts_source or not has_src_embedding):
            sharer = config.architecture if config.predicts_source else f'embeddings = "{config.embeddings}"'
            raise ValueError(
                f"`src_vocab_size` must be `vocab_size` ({vocab_size}) for {sharer}, but is {src_vocab_size}."
            )
        has_softmax = config.embeddings in ("shared", "separate")
        self.src_embedding = (
            nn.Embedding(src_vocab_size or vocab_size, config.d_model) if has_src_embedding else None
        )
        self.softmax = Linear(config.d_model, vocab_size, bias=False) if has_softmax else None
        self.make_stacks(config, dropout, ranks)
        self.expert_ranks = ranks
        self.compiles_loss = False
        """Whether `softmax_loss` is compiled on a GPU; `make_trainable` sets it."""
        self.mixtures = [module for module in self.modules() if isinstance(module, MixtureOfExperts)]
        for number, mixture in enumerate(self.mixtures):
            mixture.gate.number = number

    @abstractmethod
    def make_stacks(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        """Make the model's stacks of layers."""

    def forward(
        self,
        src: Sentences,
        tgt: Sentences,
        *,
        pair_weights: Tensor | None = None,
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
        routing: RoutingContext | None = None,
    ) -> Losses:
        """Compute the losses of a batch of pairs.

        Args:
            src: The sources.
            tgt: Their translations.
            pair_weights: `(batch,)` float32, the weight of each pair's objective; 1 by default.
            label_smoothing: See `softmax_loss`.
            z_loss: See `softmax_loss`.
            routing: Inputs of the random choices of mixtures of experts in training. In evaluation, the
                labels by which to count choices; None does not count.
        """
        routes = self._routes(src, tgt, routing)
        predictions = self.predict(src, tgt, routes)
        weights = torch.ones_like(predictions.states[:, 0], dtype=torch.float32)
        if pair_weights is not None:
            weights = pair_weights[predictions.pairs]
        objective, nats = softmax_loss(
            predictions.states,
            self.softmax_weight,
            predictions.tokens,
            weights,
            label_smoothing=label_smoothing,
            z_loss=z_loss,
            compiled=self.compiles_loss,
        )
        pair_nats = tgt.sums(nats[: tgt.num_tokens])
        balance = None if routes is None else routes.balance(len(self.mixtures))
        return Losses(objective=objective, pair_nats=pair_nats, balance=balance)

    def _routes(self, src: Sentences, tgt: Sentences, routing: RoutingContext | None) -> Routes | None:
        if not self.mixtures or (routing is None and not self.training):
            return None
        routing = routing or RoutingContext.default(tgt.batch, tgt.tokens.device)
        return Routes(routing, src, tgt)

    @abstractmethod
    def predict(self, src: Sentences, tgt: Sentences, routes: Routes | None = None) -> Predictions:
        """Return the states from which tokens are predicted; `routes` records the use of experts."""

    @abstractmethod
    def source_keys_values(self, src: Sentences) -> list[KeysValues]:
        """Return the sources' keys and values for each layer of the target stack."""

    @property
    @abstractmethod
    def target_stack(self) -> Stack:
        """The stack of target tokens."""

    @property
    def softmax_weight(self) -> Tensor:
        """The softmax's matrix `(vocab_size, d_model)`."""
        return self.embedding.weight if self.softmax is None else self.softmax.weight

    def logits(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the logits `(batch, tgt_len, vocab_size)` of every token of `tgt`, given those before it.

        Args:
            src: `(batch, src_len)` token ids; 0 is padding.
            tgt: `(batch, tgt_len)` token ids, not shifted; the logits of padding are 0.
        """
        sentences = Sentences.from_padded(tgt)
        states = self.predict(Sentences.from_padded(src), sentences).states[: sentences.num_tokens]
        return sentences.pad(self.output_logits(states))

    def output_logits(self, states: Tensor) -> Tensor:
        """Return the logits `(n, vocab_size)` of the target stack's output `states (n, d_model)`."""
        return F.linear(states, self.softmax_weight.to(states.dtype))

    def embed_sources(self, src: Sentences) -> Tensor:
        """Return the embedded source tokens `(num_tokens, d_model)`."""
        embedding = self.embedding if self.src_embedding is None else self.src_embedding
        return self._embed(embedding.weight, src.tokens, src.positions)

    def embed_targets(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return embedded target tokens `(num_tokens, d_model)`.

        Args:
            tokens: `(num_tokens,)` int64 token ids.
            positions: `(num_tokens,)` int64, the position of each in its sentence, from 0.
        """
        return self._embed(self.embedding.weight, tokens, positions)

    def _embed(self, weight: Tensor, tokens: Tensor, positions: Tensor) -> Tensor:
        x = table_rows(weight, tokens).to(self.dtype)
        if self.config.embeddings in ("tied", "tied-target"):
            # A matrix shared with the softmax is initialised at the softmax's smaller scale.
            x = x * self.config.d_model**0.5
        if self.config.positions != "relative":
            x = x + sinusoids(positions, self.config).to(x.dtype)
        return x
