"""Build a model from its config, and draw its initial weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mnmt_model.distributed.shards import local
from mnmt_model.transformer.architectures import EncoderDecoder, LanguageModel
from mnmt_model.transformer.attention import Attention
from mnmt_model.transformer.experts.experts import Experts
from mnmt_model.transformer.experts.gate import Gate
from mnmt_model.transformer.experts.ranks import SINGLE_RANK, ExpertRanks
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.positions import RelativePositionBias
from mnmt_model.transformer.translation_model import TranslationModel


def build_model(
    config: ModelConfig,
    vocab_size: int,
    *,
    src_vocab_size: int | None = None,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float32,
    ranks: ExpertRanks = SINGLE_RANK,
) -> TranslationModel:
    """Build the model of `config`, with uninitialised weights; see `initialise`.

    Args:
        config: Architecture, widths and parts.
        vocab_size: Size of the vocabulary.
        src_vocab_size: Size of the source's vocabulary, if the source has a separate embedding.
        dropout: Rate in embeddings, attention, feed-forward, sublayer outputs and the last norms.
        dtype: Precision of the states; weights are float32.
        ranks: The processes that hold the model's experts, if it has any.

    Raises:
        ValueError: If the source's vocabulary has another size but no separate embedding.
        RunError: If the model has experts and the package mnmt-moe-ext is not installed.
    """
    architecture = LanguageModel if config.is_language_model else EncoderDecoder
    return architecture(
        config, vocab_size, src_vocab_size=src_vocab_size, dropout=dropout, dtype=dtype, ranks=ranks
    )


def initialise(model: TranslationModel, seed: int) -> None:
    """Draw every weight of `model` from `seed`, in place.

    Standard deviations:

    - linear maps, gates and experts: (inputs)^-1/2;
    - the q of unscaled attention: (inputs · head_dim)^-1/2, so that scores are as large as scaled ones;
    - softmax and relative position bias: d_model^-1/2;
    - embeddings: 1, or d_model^-1/2 if shared with the softmax.

    Norm scales are 1 and biases 0. For T5 1.1 these are the original scales.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding | nn.Linear | Gate | RelativePositionBias):
            _draw(module.weight, _standard_deviation(model, name, module), generator)
        if isinstance(module, Experts):
            _draw_experts(module, generator)
        for kind, parameter in module.named_parameters(recurse=False):
            if kind == "bias":
                nn.init.zeros_(parameter)
            elif kind == "weight" and parameter.dim() == 1:
                nn.init.ones_(parameter)


def _draw_experts(experts: Experts, generator: torch.Generator) -> None:
    """Draw each expert's weights from a separate seed, so that a process draws only its experts."""
    for parameter in (experts.wi, experts.wo):
        seed = int(torch.randint(2**62, (), generator=generator))
        for expert, weight in zip(experts.local_experts, local(parameter).detach(), strict=True):
            _draw(weight, weight.size(0) ** -0.5, torch.Generator().manual_seed(seed + expert))


def _draw(weight: Tensor, std: float, generator: torch.Generator) -> None:
    nn.init.normal_(weight, std=std, generator=generator)


def _standard_deviation(model: TranslationModel, name: str, module: nn.Module) -> float:
    config = model.config
    if isinstance(module, nn.Embedding):
        tied = config.embeddings in ("tied", "tied-target")
        return float(config.d_model**-0.5) if tied else 1.0
    if isinstance(module, nn.Linear):
        parent = model.get_submodule(name.rpartition(".")[0])
        unscaled = isinstance(parent, Attention) and module is parent.q and not config.scaled_attention
        inputs = module.in_features * (config.resolved_head_dim if unscaled else 1)
        return float(inputs**-0.5)
    return float(config.d_model**-0.5)
