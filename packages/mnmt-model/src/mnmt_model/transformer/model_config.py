"""A model's config: architecture, widths and parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from mnmt_data.study import Ranges, check_ranges

Architecture = Literal["encdec", "prefix-lm", "prefix-lm-toponly", "causal-lm", "causal-lm-tgtonly"]

ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)

NUM_BUCKETS = 32
"""Buckets of distances in a relative position bias."""

SLOT_MULTIPLE = 4
"""The number of an expert's slots is a multiple of this."""

MAX_EXPERTS_PER_TOKEN = 8
"""Most experts of a token in mnmt-moe-ext."""

SecondExpert = Literal["random", "always"]

Embeddings = Literal["shared", "tied", "tied-target", "separate"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Architecture, widths and parts; the `[model]` section of a study.

    The defaults are T5 1.1's parts (Fernandes et al. 2023, App. A); `VASWANI` has the parts of the original
    Transformer, `NLLB` those of NLLB-MoE.

    Raises:
        ValueError: If a field is out of range, or fields are incompatible.
    """

    RANGES: ClassVar[Ranges] = {
        "[0, 10000]": ("encoder_layers",),
        "[1, 10000]": ("decoder_layers", "num_heads"),
        "[1, 1e5]": ("head_dim",),
        "[1, 1e6]": ("d_model",),
        "[1, 1e7]": ("d_ff",),
        "[0, 1e6]": ("num_experts",),
        "[1, inf)": ("experts_per_token", "experts_every"),
        "[0, 1000]": ("shared_experts", "capacity_factor", "eval_capacity_factor"),
        "[0, 1e9]": ("group_size",),
        "(0, inf)": ("norm_epsilon", "second_expert_threshold"),
    }

    architecture: Architecture = "encdec"
    """`encdec`, or a language model over source and target (Zhang et al. 2022, Table 1)."""
    encoder_layers: int | None = None
    """Layers of the encoder; by default the number of the decoder's. A language model has no encoder."""
    decoder_layers: int = 1
    """Layers of the decoder, or of a language model's one stack."""
    d_model: int = 64
    """Width of the residual stream."""
    num_heads: int = 4
    """Attention heads of every layer."""
    head_dim: int | None = None
    """Width of one head; `d_model / num_heads` by default."""
    d_ff: int = 256
    """Inner width of the feed-forward."""
    feed_forward: Literal["gated-gelu", "relu"] = "gated-gelu"
    """`gated-gelu`: wo(GELU(wi_0 x) * wi_1 x); `relu`: wo(ReLU(wi x))."""
    norm: Literal["rms", "layer"] = "rms"
    """`rms`: RMSNorm with a scale; `layer`: LayerNorm with scale and shift."""
    norm_order: Literal["pre", "post"] = "pre"
    """`pre`: x + f(norm(x)), with a last norm on top of each stack; `post`: norm(x + f(x))."""
    norm_epsilon: float = 1e-6
    """The ε that every norm adds to the mean square or variance."""
    positions: Literal["relative", "sinusoidal", "sinusoidal-fairseq"] = "relative"
    """`relative`: T5's learned biases of the attention scores; `sinusoidal`: sinusoids added to the
    embeddings (Vaswani et al. 2017); `sinusoidal-fairseq`: the same with fairseq's frequencies and positions
    from 1, as in M2M-100 and NLLB."""
    embeddings: Embeddings = "shared"
    """`shared`: one matrix for source and target, another for the softmax; `tied`: one for all three;
    `tied-target`: one for the source, one for target and softmax; `separate`: three."""
    biases: bool = False
    """Whether the linear maps of attention and feed-forward have biases."""
    scaled_attention: bool = False
    """Whether attention scores are divided by the square root of `head_dim`."""
    num_experts: int = 0
    """Experts of every mixture-of-experts feed-forward; 0 for a dense model."""
    experts_per_token: int = 2
    """Experts that a token chooses: 1 (Fedus et al. 2022, Switch), 2 (GShard), up to 8. With 1, `renormalise`
    must be `never`; with more than 2, `capacity_factor` should be raised alike."""
    experts_every: int = 2
    """Distance of layers with a mixture of experts: with 2, the 2nd, the 4th, … layer of a stack."""
    expert_feed_forward: Literal["relu", "gated-gelu", "gated-silu"] = "relu"
    """Each expert's feed-forward, without biases. `relu`: wo(ReLU(wi x)); `gated-gelu`, `gated-silu`:
    wo(f(wi_0 x) * wi_1 x) with f = GELU or SiLU."""
    shared_experts: int = 0
    """Experts of every token besides its chosen ones: one feed-forward with this multiple of `d_ff` (Dai et
    al. 2024, DeepSeekMoE)."""
    capacity_factor: float = 2.0
    """Slots of an expert in training, as a multiple of its equal share of the tokens of a group; 0 sets no
    limit and drops nothing. With k choices a token (`experts_per_token`), a factor below k drops
    1 - capacity_factor / k of the choices even in perfect balance."""
    group_size: int = 0
    """Tokens of a group, in which experts have slots of their own (S in Lepikhin et al. 2021, GShard); 0
    makes one group of all tokens that a process computes at once."""
    eval_capacity_factor: float = 0.0
    """The capacity factor in evaluation and translation; 0 sets no limit and drops nothing."""
    second_expert: SecondExpert = "random"
    """A token's second expert in training, if it chooses two. `random`: used with a probability that
    increases with its weight; `always`: used. In evaluation it is used. For another `experts_per_token`,
    tokens have their best experts."""
    second_expert_threshold: float = 0.5
    """Weight from which a second expert is always used, for `random`."""
    renormalise: Literal["before", "after", "never"] = "before"
    """Whether to normalise a token's weights to sum to 1 `before` or `after` choices are dropped, or `never`:
    then they are the gates."""

    def __post_init__(self) -> None:
        check_ranges(self, beyond="beyond any published model")
        self._check_widths()
        if self.encoder_layers is not None:
            self._check_encoder_layers(self.encoder_layers)
        if (count := self.experts_per_token) > MAX_EXPERTS_PER_TOKEN:
            raise ValueError(f"`experts_per_token` must be at most {MAX_EXPERTS_PER_TOKEN}, but is {count}.")
        if self.num_experts:
            self._check_choices()

    def _check_widths(self) -> None:
        if self.head_dim is None and self.d_model % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide `d_model` ({self.d_model}) where `head_dim` is not given, "
                f"but is {self.num_heads}."
            )
        if self.positions != "relative" and self.d_model % 2:
            raise ValueError(f"`d_model` must be even for sinusoidal positions, but is {self.d_model}.")

    def _check_encoder_layers(self, layers: int) -> None:
        if self.is_language_model and layers != 0:
            raise ValueError(
                f"`encoder_layers` must be left out for {self.architecture}, whose one stack has "
                f"`decoder_layers`, but is {layers}."
            )
        if not self.is_language_model and layers < 1:
            raise ValueError(f"`encoder_layers` must be at least 1, but is {layers}.")

    def _check_choices(self) -> None:
        if self.experts_per_token > self.num_experts:
            raise ValueError(
                f"`experts_per_token` must be at most `num_experts` ({self.num_experts}), "
                f"but is {self.experts_per_token}."
            )
        if self.experts_per_token == 1 and self.renormalise != "never":
            raise ValueError(
                '`renormalise` must be "never" where `experts_per_token` is 1, or the weight is always 1 and '
                f'the gate learns nothing, but is "{self.renormalise}".'
            )

    def resolved(self) -> ModelConfig:
        """Return the config with defaults that depend on other fields filled in."""
        layers = None if self.is_language_model else self.num_encoder_layers
        return replace(self, encoder_layers=layers, head_dim=self.resolved_head_dim)

    @property
    def is_language_model(self) -> bool:
        """Whether one stack reads source and target."""
        return self.architecture != "encdec"

    @property
    def source_is_causal(self) -> bool:
        """Whether a source token attends only to itself and earlier tokens."""
        return self.architecture in ("causal-lm", "causal-lm-tgtonly")

    @property
    def top_only(self) -> bool:
        """Whether targets in every layer attend to the source's states of the top layer."""
        return self.architecture in ("encdec", "prefix-lm-toponly")

    @property
    def predicts_source(self) -> bool:
        """Whether the loss includes the source's tokens."""
        return self.architecture == "causal-lm"

    @property
    def num_encoder_layers(self) -> int:
        """The number of encoder layers, 0 for a language model."""
        if self.is_language_model:
            return 0
        return self.decoder_layers if self.encoder_layers is None else self.encoder_layers

    @property
    def most_layers(self) -> int:
        """The number of layers of the deeper stack."""
        return max(self.num_encoder_layers, self.decoder_layers)

    def has_experts(self, layer: int) -> bool:
        """Return whether the layer with an index in its stack, from 0, has a mixture of experts."""
        return self.num_experts > 0 and (layer + 1) % self.experts_every == 0

    def num_groups(self, num_tokens: int) -> int:
        """Return the number of groups of a pass of tokens, of which the last may be smaller."""
        return max(1, -(-num_tokens // self.group_size)) if self.group_size else 1

    def expert_capacity(self, num_tokens: int, capacity_factor: float) -> int:
        """Return the slots C of each expert in a group of a pass: 4 ceil(S · capacity_factor / 4E).

        A share just above a multiple of 4 by rounding counts as that multiple, as in mnmt-moe-ext.

        Args:
            num_tokens: Tokens of the pass, which are S without a `group_size`.
            capacity_factor: Slots as a multiple of the fair share.
        """
        share = (self.group_size or num_tokens) * capacity_factor / self.num_experts
        return SLOT_MULTIPLE * math.ceil(share / SLOT_MULTIPLE * (1 - 1e-12))

    @property
    def resolved_head_dim(self) -> int:
        """The width of one head."""
        return self.d_model // self.num_heads if self.head_dim is None else self.head_dim

    @property
    def d_attention(self) -> int:
        """The inner width of the attention, `num_heads * head_dim`."""
        return self.num_heads * self.resolved_head_dim


VASWANI: dict[str, Any] = {
    "norm": "layer",
    "norm_order": "post",
    "feed_forward": "relu",
    "positions": "sinusoidal",
    "embeddings": "tied",
    "biases": True,
    "scaled_attention": True,
}
"""The parts of the Transformer of Vaswani et al. 2017: `ModelConfig(**VASWANI)`."""

NLLB: dict[str, Any] = {
    **VASWANI,
    "norm_order": "pre",
    "norm_epsilon": 1e-5,
    "positions": "sinusoidal-fairseq",
}
"""The parts of NLLB-MoE (NLLB Team 2022), in which transformers has a mixture of experts."""
