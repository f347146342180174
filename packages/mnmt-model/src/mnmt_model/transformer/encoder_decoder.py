"""The encoder-decoder: two stacks, whose second attends to the first's output in a sublayer of its own."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from mnmt_model.transformer.cache import KeysValues
from mnmt_model.transformer.expert_ranks import ExpertRanks
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.masks import padding_mask
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.patterns import Memory, Own, project
from mnmt_model.transformer.routes import Routes
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
