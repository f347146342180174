"""Attention in C++ against plain attention of one sentence after the other, and finite differences."""

import platform
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from shutil import copy
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from num_threads import num_threads
from torch import Tensor, nn

from mnmt_model.distributed import join_world
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.parallel import make_trainable
from mnmt_model.transformer.attention import Attention
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import Architecture, ModelConfig
from mnmt_model.transformer.native import has_library, library
from mnmt_model.transformer.operations import Spans, has_spans, ragged_attention
from mnmt_model.transformer.operations.ragged_attention import attention_work
from mnmt_model.transformer.products import TORCH, Products, Shape
from mnmt_model.transformer.sentences import Sentences

pytestmark = pytest.mark.skipif(not has_library(), reason="no C++ compiler")

NATIVE = Products(ways={Shape("attention", dtype, 1, 1, 1, 1): "native" for dtype in ("float32", "float64")})
SCALE = 0.7
lengths = st.lists(st.sampled_from([1, 2, 3, 5, 6, 7, 13]), min_size=1, max_size=4)
wide = st.lists(st.integers(1, 70), min_size=1, max_size=10)


dtypes = st.sampled_from([torch.float32, torch.float64])


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


def sentences(lengths: list[int]) -> Sentences:
    rows = [torch.ones(length, dtype=torch.long) for length in lengths]
    return Sentences.from_padded(nn.utils.rnn.pad_sequence(rows, batch_first=True))


def plain(
    queries: Tensor, keys: Tensor, values: Tensor, spans: Spans, bias: Tensor | None, heads: int
) -> Tensor:
    """Attention of one sentence after the other."""
    results = []
    for number in range(len(spans.queries) - 1):
        q = queries[spans.queries[number] : spans.queries[number + 1]]
        k, v = (x[spans.keys[number] : spans.keys[number + 1]] for x in (keys, values))
        q, k, v = (x.unflatten(1, (heads, -1)).transpose(0, 1) for x in (q, k, v))
        scores = SCALE * q @ k.transpose(1, 2)
        distances = torch.arange(k.size(1)) - torch.arange(q.size(1))[:, None]
        if bias is not None:
            scores = scores + bias[distances + spans.width - 1].permute(2, 0, 1)
        if spans.is_causal:
            scores = scores.masked_fill(distances > 0, -torch.inf)
        results.append((scores.softmax(-1) @ v).transpose(0, 1).flatten(1))
    return torch.cat(results)


def within(outputs: Tensor, bias: Tensor | None, *, of: Sentences, heads: int, causal: bool) -> Tensor:
    spans = Spans.between(of, of, bias=bias, is_causal=causal)
    return ragged_attention(outputs, None, spans, num_heads=heads, scale=SCALE, rate=0.0)


def check(actual: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    """Compare results and gradients."""
    # Sums of some hundred numbers of about 1, in float32 in another order.
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if actual.dtype == torch.float32 else {}
    torch.testing.assert_close(actual, expected, **tolerance)
    gradient = draw(*actual.shape, seed=9, dtype=actual.dtype).detach()
    results = [torch.autograd.grad(y, inputs, gradient) for y in (actual, expected)]
    torch.testing.assert_close(*results, **tolerance)


@given(
    lengths=lengths | wide,
    heads=st.integers(1, 3),
    head_dim=st.sampled_from([1, 6, 8, 16, 23, 64]),
    causal=st.booleans(),
    biased=st.booleans(),
    dtype=dtypes,
)
def test_self_attention_is_plain(
    lengths: list[int], heads: int, head_dim: int, causal: bool, biased: bool, dtype: torch.dtype
) -> None:
    of = sentences(lengths)
    outputs = draw(of.num_tokens, 3 * heads * head_dim, dtype=dtype)
    bias = draw(2 * of.width - 1, heads, seed=1, dtype=dtype) if biased else None
    spans = Spans.between(of, of, bias=bias, is_causal=causal)
    check(
        within(outputs, bias, of=of, heads=heads, causal=causal),
        plain(*outputs.chunk(3, dim=1), spans, bias, heads),
        [outputs] if bias is None else [outputs, bias],
    )


@given(
    pairs=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=10), dtype=dtypes
)
def test_cross_attention_is_plain(pairs: list[tuple[int, int]], dtype: torch.dtype) -> None:
    tgt, src = (sentences([pair[side] for pair in pairs]) for side in (0, 1))
    queries, both = draw(tgt.num_tokens, 10, dtype=dtype), draw(src.num_tokens, 20, seed=1, dtype=dtype)
    spans = Spans.between(tgt, src)
    check(
        ragged_attention(queries, both, spans, num_heads=2, scale=SCALE, rate=0.0),
        plain(queries, *both.chunk(2, dim=1), spans, None, 2),
        [queries, both],
    )


def test_small_weights_are_as_exact_as_large_ones() -> None:
    number, of = 40, sentences([40])
    scores = -torch.linspace(0, 75, number)
    queries, keys = torch.zeros(2, number, number)
    queries[:, 0], keys[:, 0] = 1, scores
    outputs = torch.cat([queries, keys, torch.eye(number)], dim=1).requires_grad_()
    y = ragged_attention(outputs, None, Spans.between(of, of), num_heads=1, scale=1.0, rate=0.0)
    torch.testing.assert_close(y[0], scores.double().softmax(0).float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("fault", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("length", [1, 7, 40])
def test_a_query_that_is_not_finite_has_no_result(
    dtype: torch.dtype, fault: float, rate: float, length: int
) -> None:
    of, number = sentences([length, 3]), length // 2
    outputs = draw(of.num_tokens, 24, dtype=dtype).detach()
    outputs[number, 2] = fault
    spans = Spans.between(of, of)
    expected = plain(*outputs.chunk(3, dim=1), spans, None, 2)
    assert expected[number, :4].isnan().all()
    y = ragged_attention(outputs, None, spans, num_heads=2, scale=SCALE, rate=rate)
    assert torch.equal(y.isnan(), expected.isnan())


def test_a_key_that_is_not_a_number_reaches_all_queries() -> None:
    of = sentences([20, 3])
    outputs = draw(of.num_tokens, 24, dtype=torch.float32).detach()
    outputs[17, 8] = torch.nan
    y = within(outputs, None, of=of, heads=2, causal=False)
    assert y[:20, :4].isnan().all()
    assert y[20:].isfinite().all()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_differences(causal: bool) -> None:
    of = sentences([1, 5, 3])
    operation = partial(within, of=of, heads=2, causal=causal)
    assert torch.autograd.gradcheck(operation, (draw(9, 18), draw(9, 2, seed=1)))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_gradients_see_the_mask_of_dropout(rate: float) -> None:
    of = sentences([4, 9, 2])

    def operation(outputs: Tensor, bias: Tensor) -> Tensor:
        torch.manual_seed(3)
        return ragged_attention(
            outputs, None, Spans.between(of, of, bias=bias), num_heads=2, scale=SCALE, rate=rate
        )

    assert torch.autograd.gradcheck(operation, (draw(15, 18), draw(17, 2, seed=1)))


@pytest.mark.parametrize(("dtype", "length"), [(torch.float32, 24), (torch.float64, 24), (torch.float32, 16)])
def test_dropout_scales_what_it_leaves(dtype: torch.dtype, length: int) -> None:
    """Equal scores, and values that are unit vectors, lay the weights open."""
    number, rate = 400, 0.2
    of = sentences([length] * number)
    zeros = torch.zeros(of.num_tokens, 2 * length, dtype=dtype)
    outputs = torch.cat([zeros, torch.eye(length, dtype=dtype).repeat(number, 1)], dim=1)

    def weights(seed: int) -> Tensor:
        torch.manual_seed(seed)
        spans = Spans.between(of, of)
        return length * ragged_attention(outputs, None, spans, num_heads=1, scale=1.0, rate=rate)

    first = weights(1)
    torch.testing.assert_close(first[first > 0], torch.full_like(first[first > 0], 1 / (1 - rate)))
    # Five standard deviations of the share of all, of each place in a row, and of pairs of neighbours.
    is_dropped = (first == 0).double()
    assert is_dropped.mean().item() == pytest.approx(rate, abs=5 * (0.16 / first.numel()) ** 0.5)
    assert (is_dropped.mean(0) - rate).abs().max() < 5 * (0.16 / len(first)) ** 0.5
    both = is_dropped[:, 1:] * is_dropped[:, :-1], is_dropped[1:] * is_dropped[:-1]
    assert all(abs(each.mean() - rate**2) < 5 * (0.04 / first.numel()) ** 0.5 for each in both)
    assert torch.equal(weights(1), first)
    assert (weights(2) != first).any()


def test_results_do_not_depend_on_threads() -> None:
    of = sentences([length % 37 + 1 for length in range(90)])
    outputs, bias = draw(of.num_tokens, 48).float().detach(), draw(2 * of.width - 1, 2).float().detach()
    inputs = (outputs.requires_grad_(), bias.requires_grad_())
    results = []
    for number in (1, 2, 3):
        with num_threads(number):
            y = within(*inputs, of=of, heads=2, causal=True)
            results.append([y, *torch.autograd.grad(y.square().sum(), inputs)])
    for result in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0], strict=True))


@pytest.mark.parametrize("positions", ["relative", "sinusoidal"])
@pytest.mark.parametrize("architecture", ["encdec", "prefix-lm-toponly"])
def test_models_agree_with_torchs_attention(
    architecture: Architecture, positions: Literal["relative", "sinusoidal"], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Spans] = []
    monkeypatch.setattr(Attention, "attend_spans", spy(calls, Attention.attend_spans))
    config = ModelConfig(
        architecture=architecture,
        positions=positions,
        d_model=8,
        num_heads=2,
        d_ff=16,
    )
    results = []
    for products in (TORCH, NATIVE):
        model = build_model(config, 20, products=products).double()
        model.dtype = torch.float64
        initialise(model, seed=1)
        src, tgt = sentences([5, 1, 8]), sentences([2, 7, 3])
        loss = model(src, tgt).objective.sum()
        results.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    torch.testing.assert_close(*results)
    # Encoder, decoder and cross-attention, or the source's attention of a language model.
    assert len(calls) == (3 if architecture == "encdec" else 1)


def spy(calls: list[Spans], attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def attend_spans(attention: Attention, x: Tensor, keys_values: Tensor | None, spans: Spans) -> Tensor:
        calls.append(spans)
        return attend(attention, x, keys_values, spans)

    return attend_spans


# Torch warns of itself when its compiler is loaded.
@pytest.mark.filterwarnings("ignore")
def test_compiled_layers_have_torchs_attention() -> None:
    config = ModelConfig(d_model=8, num_heads=2, d_ff=16)
    model = build_model(config, 20, products=NATIVE)
    of, x = sentences([5, 1, 8]), draw(14, 8)
    assert model.encoder.self_spans(of, causal=False, like=x) is not None
    train = TrainConfig(compile=True)
    with join_world() as world:
        make_trainable(model, train, world)
    assert model.encoder.self_spans(of, causal=False, like=x) is None
    assert model.decoder.cross_spans(of, of, x) is None


def test_layers_computed_again_have_the_same_dropout() -> None:
    config = ModelConfig(d_model=8, num_heads=2, d_ff=16, decoder_layers=2)
    model = build_model(config, 20, dropout=0.3, products=NATIVE).train()
    initialise(model, seed=1)
    results = []
    for checkpointing in (False, True):
        model.encoder.checkpointing = model.decoder.checkpointing = checkpointing
        torch.manual_seed(5)
        loss = model(sentences([5, 1, 8]), sentences([2, 7, 3])).objective.sum()
        results.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    torch.testing.assert_close(*results, rtol=0, atol=0)


def test_torchs_attention_serves_where_ours_may_not() -> None:
    sizes = {"num_heads": 2, "head_dim": 4}
    x, of = draw(14, 8), sentences([5, 1, 8])
    assert has_spans(of, of, x, NATIVE, **sizes)
    assert not has_spans(of, of, x, TORCH, **sizes)
    assert not has_spans(of, of, x.bfloat16(), NATIVE, **sizes)
    with torch.no_grad():
        assert not has_spans(of, of, x, NATIVE, **sizes)


@pytest.mark.parametrize("shape", [(2, 64, 6, 8), (1, 256, 64, 32), (3, 8, 8, 128)])
def test_what_is_measured_is_the_same_attention(shape: tuple[int, int, int, int]) -> None:
    compute = attention_work(Shape("attention", "float64", *shape))
    torch.testing.assert_close(compute(TORCH), compute(NATIVE))


@pytest.mark.skipif(
    platform.machine() != "x86_64" or torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="older processors cannot be imitated here",
)
@pytest.mark.parametrize("processor", ["x86-64", "haswell"])
def test_older_processors_compute_the_same(
    processor: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    flags = tuple(flag.replace("native", processor) for flag in library.FLAGS)
    monkeypatch.setattr(library, "FLAGS", flags)
    monkeypatch.setattr(library, "_functions", {})
    for source in (library.FOLDER / "attention.cpp", *library.FOLDER.glob("*.h")):
        copy(source, tmp_path)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    library._library.cache_clear()
    try:
        for dtype, shape in product(("float32", "float64"), ((2, 64, 6, 8), (3, 200, 20, 32))):
            compute = attention_work(Shape("attention", dtype, *shape))
            torch.testing.assert_close(compute(NATIVE), compute(TORCH), rtol=1e-4, atol=1e-4)
        assert list(tmp_path.glob("mnmt/*.so"))
    finally:
        library._library.cache_clear()
