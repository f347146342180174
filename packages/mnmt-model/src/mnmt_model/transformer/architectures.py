"""The architectures: the encoder-decoder, and language models that translate (Zhang et al. 2022)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from mnmt_model.transformer.attention import KeysValues
from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.experts.routes import Routes
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.patterns import (
    CrossPattern,
    JointPattern,
    PrefillPattern,
    PrefixPattern,
    SelfPattern,
    keys_values,
)
from mnmt_model.transformer.positions import padding_bias
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import Predictions, TranslationModel


class EncoderDecoder(TranslationModel):
    """X^l = FFN(SAtt(X^{l-1})), Y^l = FFN(CAtt(SAtt(Y^{l-1}), X^L)) (Zhang et al. 2022, eq. 1).

    With the default parts it is T5 1.1 (Fernandes et al. 2023, App. A).
    """

    def make_stacks(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        """Make an encoder and a decoder."""
        make = partial(Stack, config, dropout=dropout, ranks=ranks)
        self.encoder = make(config.num_encoder_layers, cross=False, causal=False)
        self.decoder = make(config.decoder_layers, cross=True, causal=True)

    @property
    def target_stack(self) -> Stack:
        """The decoder."""
        return self.decoder

    def encode(self, src: Sentences, routes: Routes | None = None) -> Tensor:
        """Return the source states `(num_tokens, d_model)`."""
        x = self.embed_sources(src)
        pattern = _self_pattern(self.encoder, src, x, causal=False)
        return self.encoder.finish(self.encoder(x, pattern, routes=routes and routes.sources()))

    def predict(self, src: Sentences, tgt: Sentences, routes: Routes | None = None) -> Predictions:
        """Return the decoder's states."""
        states = self.encode(src, routes)
        x = self.embed_targets(tgt.previous_tokens(), tgt.positions)
        pattern = _self_pattern(self.decoder, tgt, x, causal=True)
        bias = padding_bias(src.padding_mask, x.dtype)
        cross = CrossPattern(sentences=tgt, src=src, states=states, bias=bias)
        output = self.decoder.finish(self.decoder(x, pattern, cross, routes=routes and routes.targets()))
        return Predictions(states=output, tokens=tgt.tokens, pairs=tgt.rows)

    def source_keys_values(self, src: Sentences) -> list[KeysValues]:
        """Return the sources' keys and values for each layer's cross-attention."""
        states = self.encode(src)
        return [
            keys_values(layer.cross_attention, src, states).contiguous()
            for layer in self.decoder.layers
            if isinstance(layer, Layer)
        ]


class LanguageModel(TranslationModel):
    """(X^l, Y^l) = FFN(SAtt((X^{l-1}, Y^{l-1}), M)) (Zhang et al. 2022, eqs. 3-6).

    A source token attends to its whole sentence (PrefixLM), or to the tokens before it (CausalLM). A target
    token attends to its source and the target tokens before it. With TopOnly, it attends to the source's top
    states X^L in every layer instead of X^{l-1}. Sources and targets have separate positions, and relative
    position biases act only within each, as in an encoder-decoder.
    """

    def make_stacks(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        """Make one stack."""
        causal, layers = config.source_is_causal, config.decoder_layers
        self.stack = Stack(config, layers, cross=False, causal=causal, dropout=dropout, ranks=ranks)

    @property
    def target_stack(self) -> Stack:
        """The one stack."""
        return self.stack

    def predict(self, src: Sentences, tgt: Sentences, routes: Routes | None = None) -> Predictions:
        """Return the targets' states, and the sources' if the loss includes them."""
        sources, targets = self.embed_sources(src), self.embed_targets(tgt.previous_tokens(), tgt.positions)
        if self.config.top_only:
            within = _self_pattern(self.stack, src, sources, causal=self.config.source_is_causal)
            top = self.stack(sources, within, routes=routes and routes.sources())
            pattern = PrefixPattern(src=src, tgt=tgt, bias=self._target_bias(src, tgt, targets))
            states = self.stack(targets, pattern, source=top, routes=routes and routes.targets())
            return Predictions(states=self.stack.finish(states), tokens=tgt.tokens, pairs=tgt.rows)
        joint = JointPattern(
            src=src,
            tgt=tgt,
            src_bias=self._source_bias(src, sources),
            tgt_bias=self._target_bias(src, tgt, targets),
        )
        states = self.stack(torch.cat([sources, targets]), joint, routes=routes and routes.both())
        return self._predictions(src, tgt, states)

    def _predictions(self, src: Sentences, tgt: Sentences, states: Tensor) -> Predictions:
        sources, targets = torch.split(states, [src.num_tokens, tgt.num_tokens])
        if not self.config.predicts_source:
            return Predictions(states=self.stack.finish(targets), tokens=tgt.tokens, pairs=tgt.rows)
        # A source token predicts the next one; the first is not predicted.
        predicting = src.predecessors()
        return Predictions(
            states=self.stack.finish(torch.cat([targets, sources[predicting]])),
            tokens=torch.cat([tgt.tokens, src.tokens[predicting + 1]]),
            pairs=torch.cat([tgt.rows, src.rows[predicting]]),
        )

    def source_keys_values(self, src: Sentences) -> list[KeysValues]:
        """Return the sources' keys and values for each layer's attention."""
        x = self.embed_sources(src)
        bias = self._source_bias(src, x)
        layers = [layer for layer in self.stack.layers if isinstance(layer, Layer)]
        if self.config.top_only:
            top = self.stack(x, SelfPattern(sentences=src, bias=bias))
            return [_layer_keys_values(layer, src, top) for layer in layers]
        prefill = PrefillPattern(src, bias)
        for layer in layers[:-1]:
            x = layer(x, prefill)
        # The last layer's output states are not needed.
        stored = [each.contiguous() for each in prefill.stored]
        return [*stored, _layer_keys_values(layers[-1], src, x)]

    def _source_bias(self, src: Sentences, like: Tensor) -> Tensor:
        return self.stack.self_bias(src, causal=self.config.source_is_causal, like=like)

    def _target_bias(self, src: Sentences, tgt: Sentences, like: Tensor) -> Tensor:
        """Return the bias `(batch, num_heads or 1, tgt_width, src_width + tgt_width)` of targets."""
        target = self.stack.self_bias(tgt, causal=True, like=like).expand(tgt.batch, -1, -1, -1)
        source = padding_bias(src.padding_mask, like.dtype).expand(-1, target.size(1), tgt.width, -1)
        return torch.cat([source, target], dim=3)


def _self_pattern(stack: Stack, sentences: Sentences, like: Tensor, *, causal: bool) -> SelfPattern:
    """Return the pattern of self-attention in a stack."""
    return SelfPattern(sentences=sentences, bias=stack.self_bias(sentences, causal=causal, like=like))


def _layer_keys_values(layer: Layer, src: Sentences, x: Tensor) -> KeysValues:
    """Return the layer's keys and values for source states `x (num_tokens, d_model)`."""
    states = layer.attention_norm(x) if layer.is_pre_norm else x
    return keys_values(layer.attention, src, states).contiguous()
