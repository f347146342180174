"""The whole layer of a mixture of experts, gate and all, against those of others on a CPU.

Claim: training and evaluation of ours are at least 1.2 times as fast as Hugging Face's Mixtral block, and 1.5
times as fast as sorted choices with torch's grouped_mm, at equal FLOPs. Cited in docs/moe/measured.md.

Every token has its two best experts. Ours has gated-SiLU experts as Mixtral's, and ReLU experts as the sorted
pipeline has here; it is measured without a limit of slots, and with a capacity that the busiest expert fills,
so that all ways compute the same. Outputs and gradients are first compared. Then the ways take turns: forward
without a graph, and forward with backward. `products` is the share of ours that is matrix products alone, by
themselves.

    python -m benchmarks.moe.layer --out benchmarks/results/moe/layer.json
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.moe import routes
from benchmarks.moe.cases import SEED, Case
from benchmarks.moe.comparisons import Way, check, largest_load
from benchmarks.moe.timing import Run, keep_freed_memory, take_turns
from mnmt_model import ModelConfig
from mnmt_model.transformer.experts.activation import activation_work
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.experts.routes import Routes, RoutingContext
from mnmt_model.transformer.products import EXPERTS, Products, Shape, measured_products
from mnmt_model.transformer.sentences import Sentences

DROPLESS, CAPACITY, PRODUCTS = "ours, dropless", "ours, fixed capacity", "products of ours alone"
MIXTRAL, SORTED = "Mixtral block", "sorted, grouped_mm"
PEERS = {"gated-silu": MIXTRAL, "relu": SORTED}
TARGETS = {MIXTRAL: 1.2, SORTED: 1.5}
PACKAGES = ("mnmt-moe-ext", "mnmt-model", "torch", "transformers")
DETAILS = ("milliseconds", "differences", "ways")
"""Figures of a row that only the file has."""


def main(
    *,
    experts: Counts = (16, 64),
    dtypes: Names = ("float32", "bfloat16"),
    threads: Counts = (1, 2),
    tokens: int = 4096,
    d_model: int = 512,
    d_ff: int = 1024,
    seconds: float = 6.0,
    out: Out = None,
) -> None:
    """Print a table with a row for each case and pass.

    Args:
        experts: Numbers of experts.
        dtypes: Data types of states and weights.
        threads: Numbers of threads of torch.
        tokens: Tokens of a batch.
        d_model: Width of the states.
        d_ff: Inner width of an expert.
        seconds: Seconds for the rounds of a comparison, which are at least three.
        out: JSON file for the figures.
    """
    keeps_memory = keep_freed_memory()
    rows: list[Figures] = []
    for number, dtype, width in product(threads, dtypes, experts):
        torch.set_num_threads(number)
        case = Case(
            num_experts=width, num_tokens=tokens, d_model=d_model, d_ff=d_ff, dtype=dtype, device="cpu"
        )
        for kind in PEERS:
            rows += compared(case, kind, seconds)
            print_table([{name: row[name] for name in row if name not in DETAILS} for row in rows[-2:]])
            report = {"keeps_freed_memory": keeps_memory, "seconds": seconds, "rows": rows}
            write_report(out, "whole layers of mixtures of experts", report, provenance(*PACKAGES))


def compared(case: Case, kind: str, seconds: float) -> Iterator[Figures]:
    """Yield the figures of the layers with experts of a kind: of forward, and of forward with backward."""
    layers = Layers.of(case, kind)
    ways = {DROPLESS: layers.ours(), CAPACITY: layers.ours(with_capacity=True), **layers.peers()}
    differences, failed = check(ways, case)
    if failed:
        raise RuntimeError(f"{case}: {failed}")
    runs: dict[str, tuple[Run, Run]] = {
        name: (way.forward_alone, way.forward_and_backward) for name, way in ways.items()
    }
    runs[PRODUCTS] = partial(layers.products_alone, False), partial(layers.products_alone, True)
    for each, name in enumerate(("forward", "forward + backward")):
        times = take_turns({way: both[each] for way, both in runs.items()}, device="cpu", seconds=seconds)
        medians = {way: time.median_ms for way, time in times.items()}
        theirs = min(time for way, time in medians.items() if way not in (DROPLESS, CAPACITY, PRODUCTS))
        yield {
            "case": str(case),
            "experts": kind,
            "threads": torch.get_num_threads(),
            "pass": name,
            "peer": PEERS[kind],
            "peer_over_dropless": round(theirs / medians[DROPLESS], 2),
            "peer_over_capacity": round(theirs / medians[CAPACITY], 2),
            "target": TARGETS[PEERS[kind]],
            "products": round(medians[PRODUCTS] / medians[DROPLESS], 2),
            "milliseconds": {way: asdict(time) for way, time in times.items()},
            "differences": differences,
            "ways": {str(shape): way for shape, way in layers.mixture.experts.products.ways.items()},
        }


@dataclass(frozen=True, kw_only=True)
class Layers:
    """Ours and its peers, with the same weights."""

    mixture: MixtureOfExperts
    x: Tensor
    grad: Tensor

    @classmethod
    def of(cls, case: Case, kind: str) -> Layers:
        """Draw weights and states."""
        assert case.d_ff is not None
        config = ModelConfig(
            d_model=case.d_model,
            d_ff=case.d_ff,
            num_experts=case.num_experts,
            expert_feed_forward=kind,  # type: ignore[arg-type]
            second_expert="always",
            capacity_factor=0.0,
        )
        dtype = getattr(torch, case.dtype)
        torch.manual_seed(SEED)
        mixture = MixtureOfExperts(config, 0.0, SINGLE_RANK).to(dtype)
        for weight in mixture.parameters():
            nn.init.normal_(weight, std=weight.size(1) ** -0.5)
        states = torch.randn(2, case.num_tokens, case.d_model).to(dtype)
        mixture.experts.products = fastest(case, tuple(mixture.experts.wi.shape))
        return cls(mixture=mixture, x=states[0].clone().requires_grad_(), grad=states[1].clone())

    @property
    def logits(self) -> Tensor:
        """The gate's, `(tokens, experts)`."""
        return F.linear(self.x.float(), self.mixture.gate.weight.float())

    def way(self, forward: Callable[[], Tensor]) -> Way:
        """Return a way with our weights."""
        differentiated = (self.x, *self.mixture.parameters())
        return Way(forward=forward, checked=forward, differentiated=differentiated, grad=self.grad)

    def ours(self, *, with_capacity: bool = False) -> Way:
        """Return ours without a limit, or with slots for all tokens of the busiest expert."""
        factor = largest_load(self.logits) * self.mixture.config.num_experts / len(self.x)
        config = replace(self.mixture.config, capacity_factor=factor if with_capacity else 0.0)
        sentences = Sentences.from_padded(torch.full((1, len(self.x)), 5))
        context = RoutingContext.default(1, self.x.device)

        def forward() -> Tensor:
            self.mixture.config = self.mixture.gate.config = config
            routes_of_pass = Routes(context, sentences, sentences).sources()
            y: Tensor = self.mixture(self.x, routes_of_pass)
            return y

        return self.way(forward)

    def peers(self) -> dict[str, Way]:
        """Return the layers to compare with."""
        experts = self.mixture.experts
        if experts.activation.name == "gated-silu":
            return {MIXTRAL: MixtralWay.of(self)}
        use = partial(routes.grouped_experts, experts.wi, experts.wo)
        return {
            f"{SORTED}, {name}": self.way(partial(self.sorted, route, use))
            for name, route in (("index_add", routes.sorted_index_add), ("gather", routes.sorted_gather))
        }

    def sorted(self, route: Callable[..., Tensor], use: routes.RowExperts) -> Tensor:
        """Return the layer's output by a pipeline that sorts choices; the gate is computed each time."""
        return route(self.x, self.logits, use)

    @torch.no_grad()
    def products_alone(self, with_backward: bool) -> None:
        """Compute the matrix products of the experts, and nothing else."""
        _, _, ends = routes.sorted_choices(self.logits)
        experts = self.mixture.experts
        rows = self.x.repeat(2, 1)
        hidden = experts.products.experts(rows, experts.wi, ends)
        active = hidden[:, : experts.wo.size(1)].contiguous()
        y = experts.products.experts(active, experts.wo, ends)
        if with_backward:
            for inputs, gradient, weight in ((active, y, experts.wo), (rows, hidden, experts.wi)):
                experts.products.experts_grad_input(gradient, weight, ends)
                experts.products.experts_grad_weights(gradient, inputs, weight, ends)


class MixtralWay(Way):
    """Hugging Face's, whose experts' weights are matrices by themselves."""

    @classmethod
    def of(cls, layers: Layers) -> MixtralWay:
        """Return the block with the weights of ours."""
        from transformers.models.mixtral.modeling_mixtral import MixtralConfig, MixtralSparseMoeBlock

        mixture = layers.mixture
        number, d_ff, d_model = mixture.experts.wo.shape
        block = MixtralSparseMoeBlock(
            MixtralConfig(
                hidden_size=d_model, intermediate_size=d_ff, num_local_experts=number, num_experts_per_tok=2
            )
        ).to(layers.x.dtype)
        weights = matrices(mixture.gate.weight, mixture.experts.wi, mixture.experts.wo)
        names = [f"experts.{expert}.{name}.weight" for name in ("w1", "w3", "w2") for expert in range(number)]
        block.load_state_dict(dict(zip(["gate.weight", *names], weights, strict=True)))
        forward = partial(_first_output, block, layers.x)
        checked = partial(_with_float32_gate, block, forward)
        parameters = dict(block.named_parameters())
        differentiated = (layers.x, *(parameters[name] for name in ("gate.weight", *names)))
        return cls(forward=forward, checked=checked, differentiated=differentiated, grad=layers.grad)

    def output_and_gradients(self) -> tuple[Tensor, ...]:
        """Return the output and the gradients in the layout of ours."""
        output, grad_x, grad_gate, *others = super().output_and_gradients()
        a, b, down = thirds(others)
        return output, grad_x, grad_gate, torch.cat([a, b], dim=2), down


def thirds(gradients: list[Tensor]) -> list[Tensor]:
    """Return the gradients of w1, w3 and w2 of all experts, each transposed."""
    number = len(gradients) // 3
    return [
        torch.stack([each.T for each in gradients[i * number : (i + 1) * number]]).contiguous()
        for i in range(3)
    ]


def matrices(gate: Tensor, wi: Tensor, wo: Tensor) -> list[Tensor]:
    """Return the gate's matrix, each expert's w1, then each one's w3 and w2, as Mixtral's block has them."""
    a, b = wi.detach().chunk(2, dim=2)
    return [gate.detach(), *(weight.T.contiguous() for part in (a, b, wo.detach()) for weight in part)]


def _first_output(block: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = block(x[None])[0][0]
    return y


def _with_float32_gate(block: nn.Module, forward: Callable[[], Tensor]) -> Tensor:
    """Return the output where logits are float32's as ours are: in bfloat16 some tokens choose otherwise."""
    hook = block.get_submodule("gate").register_forward_hook(
        lambda gate, inputs, _: F.linear(inputs[0].float(), gate.weight.float())
    )
    try:
        return forward()
    finally:
        hook.remove()


def fastest(case: Case, wi: tuple[int, ...]) -> Products:
    """Return the ways of the experts' products that are fastest here, measured if the cache lacks them."""
    number, d_model, width = wi
    assert case.d_ff is not None
    rows = 2 * case.num_tokens
    shapes = [
        Shape(kind, case.dtype, number, rows, *each)
        for kind in EXPERTS
        for each in ((d_model, width), (case.d_ff, d_model))
    ]
    activation = Shape("expert_activation", case.dtype, 1, rows, 1, case.d_ff)
    return measured_products([*shapes, activation], {"expert_activation": activation_work})


if __name__ == "__main__":
    smoke = {
        "experts": (4,),
        "threads": (1,),
        "tokens": 64,
        "d_model": 32,
        "d_ff": 64,
        "seconds": 0.02,
    }
    run(main, smoke=smoke, needs=("transformers",))
