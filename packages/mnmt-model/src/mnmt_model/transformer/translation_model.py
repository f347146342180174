"""What all architectures have in common: embeddings, softmax, loss, and decoding a token at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.attention import KeysValues, sinusoids
from mnmt_model.transformer.decoding.flat_state import FlatState
from mnmt_model.transformer.decoding.patterns import LayerPatterns
from mnmt_model.transformer.decoding.state import DecoderState
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import ALONE, ExpertRanks
from mnmt_model.transformer.experts.routes import Gating, Routes
from mnmt_model.transformer.loss import Losses, softmax_loss
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.products import linear
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """States from which tokens are predicted: first those of the targets, then any of the sources."""

    states: Tensor
    """`(n, d_model)`."""
    tokens: Tensor
    """`(n,)` the tokens that come next."""
    pairs: Tensor
    """`(n,)` the pair each is of."""


class TranslationModel(nn.Module, ABC):
    """A Transformer that translates; its architecture is its subclass's.

    Args:
        config: What it is.
        vocab_size: Tokens of the target's vocabulary, and of the source's where that has no own.
        src_vocab_size: Tokens of the source's vocabulary, where the source has an embedding of its own.
        dropout: Rate.
        dtype: Of the states; weights are float32.
        ranks: The processes that hold its experts, if it has any.

    Raises:
        ValueError: If the source has another vocabulary, but no embedding of its own, or is predicted too.
    """

    def __init__(
        self,
        config: ModelConfig,
        vocab_size: int,
        *,
        src_vocab_size: int | None = None,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
        ranks: ExpertRanks = ALONE,
    ) -> None:
        super().__init__()
        self.config, self.vocab_size, self.dtype = config, vocab_size, dtype
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        own_source = config.embeddings in ("separate", "tied-target")
        if src_vocab_size not in (None, vocab_size) and (config.predicts_source or not own_source):
            sharer = config.architecture if config.predicts_source else f'embeddings = "{config.embeddings}"'
            raise ValueError(
                f"`src_vocab_size` must be `vocab_size` ({vocab_size}) for {sharer}, but is {src_vocab_size}."
            )
        if own_source:
            self.src_embedding = nn.Embedding(src_vocab_size or vocab_size, config.d_model)
        if config.embeddings in ("shared", "separate"):
            self.softmax = nn.Linear(config.d_model, vocab_size, bias=False)
        self.make_stacks(config, dropout, ranks)
        self.expert_ranks = ranks
        self.mixtures = [module for module in self.modules() if isinstance(module, MixtureOfExperts)]
        for number, mixture in enumerate(self.mixtures):
            mixture.number = number

    @abstractmethod
    def make_stacks(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        """Give the model its stacks of layers."""

    def forward(
        self,
        src: Sentences,
        tgt: Sentences,
        *,
        pair_weights: Tensor | None = None,
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
        gating: Gating | None = None,
    ) -> Losses:
        """Losses of a batch of pairs.

        Args:
            src: The sources.
            tgt: Their translations.
            pair_weights: `(batch,)` float32 factor of each pair's objective; 1 by default.
            label_smoothing: Of the objective, see `softmax_loss`.
            z_loss: Of the objective, see `softmax_loss`.
            gating: What the random choices of mixtures of experts depend on, in training.
        """
        routes = self._routes(src, tgt, gating)
        predicted = self.predict(src, tgt, routes)
        weights = torch.ones_like(predicted.states[:, 0], dtype=torch.float32)
        if pair_weights is not None:
            weights = pair_weights[predicted.pairs]
        objective, nats = softmax_loss(
            predicted.states,
            self.softmax_weight,
            predicted.tokens,
            weights,
            label_smoothing=label_smoothing,
            z_loss=z_loss,
        )
        pair_nats = nats.new_zeros(tgt.batch).index_add_(0, tgt.rows, nats[: tgt.num_tokens])
        balance = None if routes is None else routes.balance(len(self.mixtures))
        return Losses(objective=objective, pair_nats=pair_nats, balance=balance)

    def _routes(self, src: Sentences, tgt: Sentences, gating: Gating | None) -> Routes | None:
        if not self.mixtures or not self.training:
            return None
        gating = gating or Gating.default(tgt.batch, tgt.tokens.device)
        return Routes(gating, src, tgt, self.expert_ranks)

    @abstractmethod
    def predict(self, src: Sentences, tgt: Sentences, routes: Routes | None = None) -> Predictions:
        """The states from which the targets' tokens are predicted; `routes` in training with experts."""

    @abstractmethod
    def read(self, src: Sentences) -> list[KeysValues]:
        """The sources' keys and values that targets see, in each layer of the target stack."""

    @property
    @abstractmethod
    def target_stack(self) -> Stack:
        """The stack that targets pass."""

    @property
    def softmax_weight(self) -> Tensor:
        """`(vocab_size, d_model)`."""
        return self.softmax.weight if hasattr(self, "softmax") else self.embedding.weight

    def logits(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits `(batch, tgt_len, vocab_size)` of every token of `tgt`, given those before it.

        Args:
            src: `(batch, src_len)` token ids; 0 is padding.
            tgt: `(batch, tgt_len)` token ids, not shifted; the logits of padding are 0.
        """
        sentences = Sentences.from_padded(tgt)
        states = self.predict(Sentences.from_padded(src), sentences).states[: sentences.num_tokens]
        return sentences.pad(self.project(states))

    def project(self, states: Tensor) -> Tensor:
        """Logits `(n, vocab_size)` of `states (n, d_model)`."""
        return linear(states, self.softmax_weight.to(states.dtype))

    def start(self, src: Sentences) -> DecoderState:
        """What is remembered of `src` before the first target token."""
        return DecoderState.start(self.read(src), src.hidden)

    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Logits `(rows, vocab_size)` of what follows `tokens (rows,)`, and what is remembered there."""
        x = self.embed_targets(tokens, torch.full_like(tokens, state.length))
        patterns = state.patterns(self.target_stack, x)
        return self._next_logits(x, patterns), state.after(patterns)

    def start_flat(self, src: Sentences, *, beam: int) -> FlatState:
        """What is remembered of `src` before the first target token of `beam` hypotheses each."""
        cross = self.target_stack.has_cross_attention
        return FlatState.start(self.read(src), src.hidden, beam=beam, cross=cross)

    def step_flat(
        self, state: FlatState, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, FlatState]:
        """Logits `(batch, beam, vocab_size)` of what follows `tokens (batch, beam)`, and the state there.

        `ancestors` and `positions` are those of `IncrementalModel.step_flat`.
        """
        x = self.embed_targets(tokens.flatten(), positions.flatten())
        state = state.before(ancestors, positions)
        patterns = state.patterns(self.target_stack, ancestors, x)
        logits = self._next_logits(x, patterns).view(*tokens.shape, self.vocab_size)
        return logits, state.after(patterns)

    def _next_logits(self, x: Tensor, patterns: Sequence[LayerPatterns]) -> Tensor:
        """Logits `(num_tokens, vocab_size)` of what follows embedded tokens `x (num_tokens, d_model)`."""
        for layer, pattern in zip(self.target_stack.layers, patterns, strict=True):
            x = layer(x, pattern.own, pattern.cross)
        return self.project(self.target_stack.finish(x))

    def embed_sources(self, src: Sentences) -> Tensor:
        """`(num_tokens, d_model)` embedded source tokens."""
        embedding = getattr(self, "src_embedding", self.embedding)
        return self._embed(embedding.weight, src.tokens, src.positions)

    def embed_targets(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """`(num_tokens, d_model)` embedded target tokens `(num_tokens,)`, at their positions from 0."""
        return self._embed(self.embedding.weight, tokens, positions)

    def _embed(self, weight: Tensor, tokens: Tensor, positions: Tensor) -> Tensor:
        x = F.embedding(tokens, weight).to(self.dtype)
        if self.config.embeddings in ("tied", "tied-target"):
            # One matrix that serves the softmax too is drawn at its smaller scale.
            x = x * self.config.d_model**0.5
        if self.config.positions == "sinusoidal":
            x = x + sinusoids(positions, self.config.d_model).to(x.dtype)
        return x
