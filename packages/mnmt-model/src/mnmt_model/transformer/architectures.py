"""The architectures: the encoder-decoder, and language models that translate (Zhang et al. 2022)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from mnmt_model.transformer.attention import KeysValues, padding_mask
from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.experts.routes import Routes
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.patterns import Joint, Kept, Memory, Own, Prefixed, project
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import Predictions, TranslationModel


class EncoderDecoder(TranslationModel):
    """X^l = FFN(SAtt(X^{l-1})), Y^l = FFN(CAtt(SAtt(Y^{l-1}), X^L)) (Zhang et al. 2022, eq. 1).

    With the default parts it is T5 1.1 (Fernandes et al. 2023, App. A).
    """

    def make_stacks(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        """An encoder and a decoder."""
        make = partial(Stack, config, dropout=dropout, ranks=ranks)
        self.encoder = make(config.num_encoder_layers, cross=False, causal=False)
        self.decoder = make(config.decoder_layers, cross=True, causal=True)

    @property
    def target_stack(self) -> Stack:
        """The decoder."""
        return self.decoder

    def encode(self, src: Sentences, routes: Routes | None = None) -> Tensor:
        """Source states `(num_tokens, d_model)`."""
        x = self.embed_sources(src)
        pattern = Own(sentences=src, bias=self.encoder.bias(src, causal=False, like=x))
        return self.encoder.finish(self.encoder(x, pattern, routes=routes and routes.sources()))

    def predict(self, src: Sentences, tgt: Sentences, routes: Routes | None = None) -> Predictions:
        """The decoder's states."""
        states = self.encode(src, routes)
        x = self.embed_targets(tgt.shifted(), tgt.positions)
        own = Own(sentences=tgt, bias=self.decoder.bias(tgt, causal=True, like=x))
        cross = Memory(sentences=tgt, src=src, states=states, bias=padding_mask(src.hidden, x.dtype))
        output = self.decoder.finish(self.decoder(x, own, cross, routes=routes and routes.targets()))
        return Predictions(states=output, tokens=tgt.tokens, pairs=tgt.rows)

    def read(self, src: Sentences) -> list[KeysValues]:
        """The sources' keys and values for each layer's cross-attention."""
        states = self.encode(src)
        return [
            project(layer.cross_attention, src, states).packed()
            for layer in self.decoder.layers
            if isinstance(layer, Layer)
        ]


class LanguageModel(TranslationModel):
    """(X^l, Y^l) = FFN(SAtt((X^{l-1}, Y^{l-1}), M)) (Zhang et al. 2022, eqs. 3-6).

    Sources see all of themselves (PrefixLM) or what came before (CausalLM); targets see their source and the
    targets before. With TopOnly, they see the source's top states X^L in every layer in place of X^{l-1}.
    Sources and targets count positions apart. A relative position bias acts within each; between target and
    source there is none, as in an encoder-decoder's cross-attention.
    """

    def make_stacks(self, config: ModelConfig, dropout: float, ranks: ExpertRanks) -> None:
        """One stack."""
        causal, layers = config.source_is_causal, config.decoder_layers
        self.stack = Stack(config, layers, cross=False, causal=causal, dropout=dropout, ranks=ranks)

    @property
    def target_stack(self) -> Stack:
        """The one stack."""
        return self.stack

    def predict(self, src: Sentences, tgt: Sentences, routes: Routes | None = None) -> Predictions:
        """The targets' states, and the sources' if the loss counts them."""
        sources, targets = self.embed_sources(src), self.embed_targets(tgt.shifted(), tgt.positions)
        if self.config.top_only:
            top = self.stack(sources, self._source_pattern(src, sources), routes=routes and routes.sources())
            pattern = Prefixed(src=src, tgt=tgt, bias=self._target_bias(src, tgt, targets))
            states = self.stack(targets, pattern, source=top, routes=routes and routes.targets())
            return Predictions(states=self.stack.finish(states), tokens=tgt.tokens, pairs=tgt.rows)
        joint = Joint(
            src=src,
            tgt=tgt,
            src_bias=self._source_pattern(src, sources).bias,
            tgt_bias=self._target_bias(src, tgt, targets),
        )
        states = self.stack(torch.cat([sources, targets]), joint, routes=routes and routes.both())
        return self._predictions(src, tgt, states)

    def _predictions(self, src: Sentences, tgt: Sentences, states: Tensor) -> Predictions:
        sources, targets = torch.split(states, [src.num_tokens, tgt.num_tokens])
        if not self.config.predicts_source:
            return Predictions(states=self.stack.finish(targets), tokens=tgt.tokens, pairs=tgt.rows)
        # A source token predicts the next; the first, a language tag or not, is given.
        followed = (src.positions[1:] > 0).nonzero().squeeze(1)
        return Predictions(
            states=self.stack.finish(torch.cat([targets, sources[followed]])),
            tokens=torch.cat([tgt.tokens, src.tokens[followed + 1]]),
            pairs=torch.cat([tgt.rows, src.rows[followed]]),
        )

    def read(self, src: Sentences) -> list[KeysValues]:
        """The sources' keys and values in each layer."""
        x = self.embed_sources(src)
        pattern = self._source_pattern(src, x)
        layers = [layer for layer in self.stack.layers if isinstance(layer, Layer)]
        if self.config.top_only:
            top = self.stack(x, pattern)
            return [_seen(layer, src, top) for layer in layers]
        kept = Kept(pattern)
        for layer in layers[:-1]:
            x = layer(x, kept)
        # Nobody sees what the last layer makes of sources.
        return [*(seen.packed() for seen in kept.seen), _seen(layers[-1], src, x)]

    def _source_pattern(self, src: Sentences, like: Tensor) -> Own:
        bias = self.stack.bias(src, causal=self.config.source_is_causal, like=like)
        return Own(sentences=src, bias=bias)

    def _target_bias(self, src: Sentences, tgt: Sentences, like: Tensor) -> Tensor:
        """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""
        own = self.stack.bias(tgt, causal=True, like=like).expand(tgt.batch, -1, -1, -1)
        source = padding_mask(src.hidden, like.dtype).expand(-1, own.size(1), tgt.width, -1)
        return torch.cat([source, own], dim=3)


def _seen(layer: Layer, src: Sentences, x: Tensor) -> KeysValues:
    """Keys and values that the layer's attention makes of source states `x (num_tokens, d_model)`."""
    states = layer.attention_norm(x) if layer.is_pre_norm else x
    return project(layer.attention, src, states).packed()
