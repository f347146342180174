"""The chunked softmax loss against autograd through the whole table of logits."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from mnmt_model.transformer import loss as module
from mnmt_model.transformer.loss import softmax_loss

NUM_TOKENS, D_MODEL, VOCAB_SIZE = 23, 6, 11
# Fewest rows and most logits of a chunk: 1, 5, 7 or all tokens, and more than there are.
CHUNKS = [(1, 1), (1, 5 * VOCAB_SIZE), (7, VOCAB_SIZE), (1, NUM_TOKENS * VOCAB_SIZE), (1, 10**6)]
Case = tuple[Tensor, Tensor, Tensor, Tensor]


def case(num_tokens: int = NUM_TOKENS, seed: int = 0, scale: float = 1.0) -> Case:
    """States, softmax weight, targets and the tokens' weights, some of which are 0."""
    generator = torch.Generator().manual_seed(seed)
    states = (torch.randn(num_tokens, D_MODEL, generator=generator) * scale).requires_grad_()
    weight = torch.randn(VOCAB_SIZE, D_MODEL, generator=generator).requires_grad_()
    targets = torch.randint(VOCAB_SIZE, (num_tokens,), generator=generator)
    token_weights = torch.rand(num_tokens, generator=generator) * 3
    token_weights[::4] = 0
    return states, weight, targets, token_weights


def set_chunk(monkeypatch: pytest.MonkeyPatch, fewest_rows: int, most_logits: int) -> None:
    monkeypatch.setattr(module, "MIN_ROWS", fewest_rows)
    monkeypatch.setattr(module, "CHUNK_LOGITS", most_logits)


def expected_loss(
    states: Tensor, weight: Tensor, targets: Tensor, token_weights: Tensor, smoothing: float, z_loss: float
) -> tuple[Tensor, Tensor]:
    logits = states @ weight.T
    smoothed = cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
    objective = smoothed + z_loss * logits.logsumexp(1) ** 2
    return objective @ token_weights, cross_entropy(logits, targets, reduction="none")


def expected(inputs: Case, smoothing: float, z_loss: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Objective, nats and gradients of states and weight, in float64."""
    states, weight = (tensor.detach().double().requires_grad_() for tensor in inputs[:2])
    objective, nats = expected_loss(states, weight, inputs[2], inputs[3].double(), smoothing, z_loss)
    gradients = torch.autograd.grad(objective, [states, weight])
    return objective.detach(), nats.detach(), *gradients


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(("smoothing", "z_loss"), [(0, 0), (0.1, 0), (0, 1e-2), (0.2, 1e-2), (1, 0)])
def test_loss_and_gradients_are_autograds(
    chunk: tuple[int, int], smoothing: float, z_loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_chunk(monkeypatch, *chunk)
    inputs = case()
    objective, nats = softmax_loss(*inputs, label_smoothing=smoothing, z_loss=z_loss)
    gradients = torch.autograd.grad(objective, inputs[:2])
    for actual, reference in zip(
        (objective, nats, *gradients), expected(inputs, smoothing, z_loss), strict=True
    ):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual.double(), reference, rtol=1e-5, atol=2e-6)


@given(
    num_tokens=st.integers(1, 40),
    seed=st.integers(0, 1000),
    smoothing=st.floats(0, 0.9),
    z_loss=st.floats(0, 0.1),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_any_loss_and_gradients_are_autograds(
    num_tokens: int, seed: int, smoothing: float, z_loss: float, scale: float
) -> None:
    inputs = case(num_tokens, seed, scale)
    objective, nats = softmax_loss(*inputs, label_smoothing=smoothing, z_loss=z_loss)
    gradients = torch.autograd.grad(objective, inputs[:2])
    for actual, reference in zip(
        (objective, nats, *gradients), expected(inputs, smoothing, z_loss), strict=True
    ):
        largest = float(reference.abs().max())
        torch.testing.assert_close(actual.double(), reference, rtol=1e-4, atol=1e-5 * max(1, largest))


@given(
    num_tokens=st.integers(1, 40),
    seed=st.integers(0, 1000),
    smoothing=st.floats(0, 0.9),
    z_loss=st.floats(0, 0.1),
    scale=st.sampled_from([0.01, 1.0, 10.0]),
)
def test_the_loss_that_a_gpu_compiles_is_the_same(
    num_tokens: int, seed: int, smoothing: float, z_loss: float, scale: float
) -> None:
    states, weight, *rest = case(num_tokens, seed, scale)
    logits = (states @ weight.T).detach()
    fusible = module._fusible_cross_entropy(logits, *rest, smoothing, z_loss)
    for actual, reference in zip(
        fusible, module._cross_entropy_(logits, *rest, smoothing, z_loss), strict=True
    ):
        largest = float(reference.abs().max())
        torch.testing.assert_close(actual, reference, rtol=1e-6, atol=1e-6 * max(1, largest))


def test_the_compiled_loss_is_one_graph_for_all_chunks_and_settings() -> None:
    compiled = torch.compile(module._fusible_cross_entropy, backend="aot_eager", fullgraph=True)
    for num_tokens, smoothing, z_loss in ((8, 0.1, 1e-4), (5, 0.1, 1e-4), (3, 0.0, 0.0)):
        states, weight, *rest = case(num_tokens)
        logits = (states @ weight.T).detach().bfloat16()
        for actual, reference in zip(
            compiled(logits, *rest, smoothing, z_loss),
            module._fusible_cross_entropy(logits, *rest, smoothing, z_loss),
            strict=True,
        ):
            assert actual.dtype == reference.dtype
            torch.testing.assert_close(actual, reference)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gpu_takes_the_compiled_loss_if_asked(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def record(logits: Tensor, *rest: Any) -> module.TokenLosses:
        taken.append(len(logits))
        return module._fusible_cross_entropy(logits, *rest)

    monkeypatch.setattr(module, "_compiled_cross_entropy", lambda: record)
    states, weight = (torch.empty(n, 4, device="meta", requires_grad=True) for n in (5, 9))
    targets, weights = torch.empty(5, device="meta", dtype=torch.int64), torch.empty(5, device="meta")
    objective, _ = module.softmax_loss(states, weight, targets, weights, compiled=compiled)
    objective.backward()
    assert taken == ([5] if compiled else [])
    assert states.grad is not None
    assert states.grad.shape == states.shape


def test_gradients_are_finite_differences() -> None:
    inputs = case()
    parameters, rest = [tensor.detach() for tensor in inputs[:2]], inputs[2:]

    def loss(states: Tensor, weight: Tensor) -> Tensor:
        return softmax_loss(states, weight, *rest, label_smoothing=0.1, z_loss=0.01)[0]

    gradients = torch.autograd.grad(loss(*inputs[:2]), inputs[:2])
    for number in range(20):
        generator = torch.Generator().manual_seed(number)
        step = [0.005 * torch.randn(tensor.shape, generator=generator) for tensor in parameters]
        up, down = (
            loss(*(tensor + sign * by for tensor, by in zip(parameters, step, strict=True)))
            for sign in (1, -1)
        )
        slope = sum((gradient * by).sum() for gradient, by in zip(gradients, step, strict=True))
        torch.testing.assert_close((up - down) / 2, slope, rtol=1e-2, atol=1e-4)


def test_states_of_float64_are_taken() -> None:
    inputs = case()
    states, weight = (tensor.detach().double().requires_grad_() for tensor in inputs[:2])
    objective, _ = softmax_loss(states, weight, *inputs[2:], label_smoothing=0.1)
    reference, _, *gradients = expected(inputs, 0.1, 0.0)
    torch.testing.assert_close(objective.double(), reference, rtol=1e-5, atol=0)
    for actual, gradient in zip(torch.autograd.grad(objective, [states, weight]), gradients, strict=True):
        assert actual.dtype == torch.float64
        torch.testing.assert_close(actual, gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_states_of_bfloat16_give_a_loss_and_weight_gradients_of_float32(
    chunk: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_chunk(monkeypatch, *chunk)
    states, weight, *rest = case()
    states = states.detach().bfloat16().requires_grad_()
    objective, nats = softmax_loss(states, weight, *rest, label_smoothing=0.1, z_loss=1e-2)
    of_states, of_weight = torch.autograd.grad(objective, [states, weight])
    assert (objective.dtype, nats.dtype, of_weight.dtype) == (torch.float32,) * 3
    assert of_states.dtype == torch.bfloat16
    references = expected((states, weight, *rest), 0.1, 1e-2)
    for actual, reference in zip((objective, nats, of_states, of_weight), references, strict=True):
        assert (actual - reference).norm() < 1e-2 * reference.norm()


def test_gradients_are_scaled_by_what_follows() -> None:
    inputs = case()
    of_one = torch.autograd.grad(softmax_loss(*inputs)[0], inputs[:2])
    of_three = torch.autograd.grad(-3 * softmax_loss(*inputs)[0], inputs[:2])
    for one, three in zip(of_one, of_three, strict=True):
        torch.testing.assert_close(three, -3 * one)


@pytest.mark.parametrize("frozen", [0, 1])
def test_only_one_of_states_and_weight_may_be_trained(frozen: int) -> None:
    inputs = case()
    trained = inputs[1 - frozen]
    reference = torch.autograd.grad(softmax_loss(*inputs)[0], trained)
    inputs[frozen].requires_grad_(False)
    torch.testing.assert_close(torch.autograd.grad(softmax_loss(*inputs)[0], trained), reference)


def test_a_loss_is_not_differentiated_twice() -> None:
    inputs = case()
    (gradient,) = torch.autograd.grad(softmax_loss(*inputs)[0].square(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("target", [-1, -(10**8), VOCAB_SIZE])
def test_a_target_outside_the_vocabulary_is_refused(target: int) -> None:
    states, weight, targets, token_weights = case()
    targets[3] = target
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        softmax_loss(states, weight, targets, token_weights)


def test_nats_are_not_differentiated() -> None:
    assert not softmax_loss(*case())[1].requires_grad


def test_a_sure_prediction_costs_nothing_and_a_wrong_one_its_margin() -> None:
    states, weight = torch.tensor([[1000.0], [-1000.0]]), torch.tensor([[1.0], [-1.0]])
    objective, nats = softmax_loss(states, weight, torch.tensor([0, 0]), torch.ones(2))
    assert nats.tolist() == [0, 2000]
    assert objective == 2000


class Sizes(TorchDispatchMode):
    """Records every operation and the elements of what it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, int]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        output = function(*args, **(kwargs or {}))
        if isinstance(output, Tensor):
            self.made.append((str(function), output.numel()))
        return output

    def products(self) -> int:
        return sum("mm" in name for name, _ in self.made)


def test_no_table_of_tokens_by_vocabulary_is_made_or_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk_tokens = 3
    set_chunk(monkeypatch, 1, chunk_tokens * VOCAB_SIZE)
    inputs = case(num_tokens=200)
    saved: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        saved.append(tensor.numel())
        return tensor

    sizes = Sizes()
    with sizes, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        softmax_loss(*inputs, label_smoothing=0.1, z_loss=0.1)[0].backward()
    # The states' gradient and the weight's are made and kept, and nothing as large as the logits is.
    assert sorted(saved) == sorted([200 * D_MODEL, VOCAB_SIZE * D_MODEL])
    assert max(size for _, size in sizes.made) == 200 * D_MODEL < 200 * VOCAB_SIZE


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_gradients_are_computed_where_none_are_wanted(mode: Callable[[], Any]) -> None:
    inputs = case()
    reference = softmax_loss(*inputs)
    with mode(), Sizes() as sizes:
        objective, nats = softmax_loss(*inputs)
    assert not objective.requires_grad
    assert objective == reference[0]
    assert torch.equal(nats, reference[1])
    assert sizes.products() <= 1
    with Sizes() as sizes:
        softmax_loss(*inputs)
    assert sizes.products() == 3
