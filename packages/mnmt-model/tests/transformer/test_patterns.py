"""Who sees whom: every entry of every architecture's mask, found by differentiation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.positions import HIDDEN, causal_bias, padding_bias
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 30
PARTS = {
    "t5": {},
    "vanilla": {"norm": "layer", "norm_order": "post", "feed_forward": "relu", "positions": "sinusoidal"},
}
MODELS: dict[tuple[str, str, int], TranslationModel] = {}
lengths = st.integers(1, 5)


def make_model(architecture: Architecture, parts: str, layers: int) -> TranslationModel:
    key = architecture, parts, layers
    if key not in MODELS:
        config = ModelConfig(
            architecture=architecture, decoder_layers=layers, d_model=8, num_heads=2, d_ff=16, **PARTS[parts]
        )
        MODELS[key] = build_model(config, VOCAB_SIZE).eval()
        initialise(MODELS[key], seed=1)
    return MODELS[key]


def sentences(lengths: list[int]) -> Sentences:
    rows = [torch.arange(2, 2 + length) for length in lengths]
    return Sentences.from_padded(nn.utils.rnn.pad_sequence(rows, batch_first=True))


def stack_states(model: TranslationModel, src: Sentences, tgt: Sentences) -> tuple[list[Tensor], Tensor]:
    """What went into the stacks, and what came out: `(source tokens + target tokens, d_model)`."""
    inputs, outputs = [], []

    def record(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        inputs.append(args[0])
        outputs.append(output)

    hooks = [stack.register_forward_hook(record) for stack in model.modules() if isinstance(stack, Stack)]
    model.predict(src, tgt)
    for hook in hooks:
        hook.remove()
    return inputs, torch.cat(outputs)


def influence(model: TranslationModel, src: Sentences, tgt: Sentences) -> Tensor:
    """`(n, n)` bool over all source and then all target tokens: whether state i depends on input j."""
    inputs, states = stack_states(model, src, tgt)
    directions = torch.randn(states.shape, generator=torch.Generator().manual_seed(0))
    rows = []
    for state, direction in zip(states, directions, strict=True):
        gradients = torch.autograd.grad(
            state @ direction, inputs, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        rows.append(torch.cat(gradients).abs().sum(1) > 0)
    return torch.stack(rows)


def defined_mask(architecture: Architecture, src_len: int, tgt_len: int) -> Tensor:
    """M(i, j) over [X, Y], i and j from 1 (Zhang et al. 2022, eqs. 4 and 5).

    Those of an encoder, of a decoder and of its cross-attention are together a PrefixLM's, as is that of
    TopOnly, whose targets see all sources, each of which saw all sources.
    """
    total = src_len + tgt_len
    causal = architecture in ("causal-lm", "causal-lm-tgtonly")
    mask = torch.zeros(total, total, dtype=torch.bool)
    for i in range(1, total + 1):
        for j in range(1, total + 1):
            mask[i - 1, j - 1] = i >= j or (not causal and j <= src_len)
    return mask


@pytest.mark.parametrize(("parts", "layers"), [("t5", 1), ("t5", 3), ("vanilla", 3)])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@given(src_len=lengths, tgt_len=lengths)
@settings(max_examples=6)
def test_a_state_depends_on_what_its_mask_shows(
    architecture: Architecture, parts: str, layers: int, src_len: int, tgt_len: int
) -> None:
    # Each mask is transitive, so that what is visible through further layers is what is visible through one.
    visible = influence(make_model(architecture, parts, layers), sentences([src_len]), sentences([tgt_len]))
    assert torch.equal(visible, defined_mask(architecture, src_len, tgt_len))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@given(pairs=st.lists(st.tuples(lengths, lengths), min_size=2, max_size=3))
@settings(max_examples=6)
def test_pairs_of_a_batch_do_not_see_each_other(
    architecture: Architecture, pairs: list[tuple[int, int]]
) -> None:
    src, tgt = sentences([pair[0] for pair in pairs]), sentences([pair[1] for pair in pairs])
    visible = influence(make_model(architecture, "t5", 2), src, tgt)
    pair_of = torch.cat([src.rows, tgt.rows])
    assert not visible[pair_of[:, None] != pair_of].any()
    for number, (src_len, tgt_len) in enumerate(pairs):
        indices = (pair_of == number).nonzero().squeeze(1)
        assert torch.equal(visible[indices][:, indices], defined_mask(architecture, src_len, tgt_len))


def target_states(architecture: Architecture, layers: int) -> Tensor:
    """With weights that are the same for every language model."""
    model = make_model(architecture, "vanilla", layers)
    return model.predict(sentences([5]), sentences([4])).states[:4]


def test_targets_see_the_sources_states_of_the_layer_below_or_of_the_top() -> None:
    """X^0 knows no mask; X^1, which a second layer or TopOnly sees, does."""
    same_layer = target_states("prefix-lm", 1)
    torch.testing.assert_close(same_layer, target_states("causal-lm-tgtonly", 1))
    assert not torch.allclose(target_states("prefix-lm", 2), target_states("causal-lm-tgtonly", 2), atol=1e-2)
    assert not torch.allclose(same_layer, target_states("prefix-lm-toponly", 1), atol=1e-2)


def test_a_padding_mask_hides_padding() -> None:
    hidden = torch.tensor([[False, False, True], [False, True, True]])
    mask = padding_bias(hidden, torch.float32)
    assert mask.tolist() == [[[[0, 0, HIDDEN]]], [[[0, HIDDEN, HIDDEN]]]]
    assert padding_bias(hidden, torch.bfloat16).dtype == torch.bfloat16


def test_a_causal_mask_hides_what_comes_later() -> None:
    like = torch.zeros(1, dtype=torch.float64)
    assert causal_bias(3, 3, like).tolist() == [[0, HIDDEN, HIDDEN], [0, 0, HIDDEN], [0, 0, 0]]
    assert causal_bias(2, 4, like).tolist() == [[0, 0, 0, HIDDEN], [0, 0, 0, 0]]
    assert causal_bias(1, 4, like).tolist() == [[0, 0, 0, 0]]
    assert causal_bias(3, 3, like).dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_hidden_key_has_no_weight_and_a_blind_query_no_nan(dtype: torch.dtype) -> None:
    scores = torch.tensor([[80.0, -80.0], [-80.0, 80.0]], dtype=dtype)
    mask = padding_bias(torch.tensor([[False, True], [True, True]]), dtype)[:, 0, 0]
    weights = (scores + mask).softmax(-1)
    assert weights[0].tolist() == [1, 0]
    assert weights[1].isfinite().all()
