"""A whole layer of experts, gate and all: forward with backward of ours and of others.

Claim: on a CPU ours takes as long as sorted choices, or up to 10% less; compiled by torch these are quicker
at d 64. Hugging Face's Mixtral block takes longer. Cited in docs/moe/measured.md.

Every token has its two best experts, of the gated-SiLU kind. Ours is mnmt-model's layer in training, without
a limit of slots, and with the slots that the busiest expert needs, so that all compute the same. Outputs and
gradients are compared before the ways take turns. Compiled pipelines multiply by a padded bmm, and by
grouped_mm, which torch's compiler takes only in bfloat16. The former are told the busiest expert's load,
which a program would have to read from the device. All gates are float32.

Compiling takes longer than measuring. Its results stay on disk: run it with `--seconds 0` on a busy machine,
then as it is on a quiet one.

    python -m benchmarks.moe.layer --out benchmarks/results/moe/layer.json
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.moe import routes
from benchmarks.moe.timing import keep_freed_memory, relative_difference, table_row, take_turns
from mnmt_model import ModelConfig
from mnmt_model.transformer.experts.layer import MixtureOfExperts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.experts.routes import Routes, RoutingContext
from mnmt_model.transformer.sentences import Sentences

TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2}


def main(
    *,
    device: Literal["cpu", "cuda"] = "cpu",
    d_model: Counts = (64, 256, 512),
    experts: Counts = (8, 64),
    dtypes: Names = ("float32", "bfloat16"),
    tokens: int = 4096,
    seconds: float = 5.0,
    threads: int = 1,
    compiler: str = "inductor",
    out: Out = None,
) -> None:
    """Print a row for each case: the milliseconds of ours, and how many times that the others took.

    Args:
        device: `cpu` or `cuda`.
        d_model: Widths of the states; experts are twice as wide inside.
        experts: Numbers of experts.
        dtypes: Data types of states and weights.
        tokens: Tokens of a batch.
        seconds: Seconds for the rounds of a case, which are at least five.
        threads: Threads of torch.
        compiler: The backend of torch.compile.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    report: Figures = {
        "tokens": tokens,
        "threads": threads,
        "keeps_freed_memory": device == "cpu" and keep_freed_memory(),
        "rows": [],
    }
    table: list[Figures] = []
    for dtype, width, number in product(dtypes, d_model, experts):
        torch.compiler.reset()  # which keeps few shapes of a function
        ways = Layer.draw(tokens, width, number, dtype, device).ways(compiler)
        check(ways, TOLERANCES[dtype])
        times = take_turns(ways, device=device, seconds=seconds)
        case = {"dtype": dtype, "d_model": width, "experts": number}
        report["rows"] += [case | {"way": name} | each for name, each in times.items()]
        table.append(case | table_row(times))
    print_table(table)
    description = provenance("mnmt-moe-ext", "mnmt-model", "torch", "transformers", gpu=device == "cuda")
    write_report(out, "a layer of experts, forward with backward", report, description)


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to compute the layer."""

    forward: Callable[[], Tensor]
    leaves: tuple[Tensor, ...]
    """The states, the gate's weight and the experts' weights."""
    grad: Tensor

    def __call__(self) -> tuple[Tensor, ...]:
        """Return the output and the gradients of the leaves."""
        output = self.forward()
        return output.detach(), *torch.autograd.grad(output, self.leaves, self.grad)

    def in_our_layout(self) -> tuple[Tensor, ...]:
        """Return the same with the gradients of `wi` and `wo`, if there are matrices of each expert."""
        output, x, gate, *weights = self()
        if len(weights) == 2:
            return output, x, gate, *weights
        a, b, wo = (torch.stack([each.T for each in weights[kind::3]]) for kind in range(3))
        return output, x, gate, torch.cat([a, b], dim=2), wo


def check(ways: dict[str, Way], tolerance: float) -> None:
    """Compare outputs and gradients.

    Raises:
        RuntimeError: A way computes something else than ours.
    """
    expected = ways["ours"].in_our_layout()
    for name, way in ways.items():
        apart = max(map(relative_difference, way.in_our_layout(), expected))
        if apart > tolerance:
            raise RuntimeError(f"{name} differs from ours by {apart:.1e}")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The weights of ours, the states x (tokens, d_model), and the gradient of the output."""

    mixture: MixtureOfExperts
    x: Tensor
    grad: Tensor

    @classmethod
    def draw(cls, tokens: int, d_model: int, num_experts: int, dtype: str, device: str) -> Layer:
        """Draw all of them from normal distributions."""
        config = ModelConfig(
            d_model=d_model,
            d_ff=2 * d_model,
            num_experts=num_experts,
            expert_feed_forward="gated-silu",
            second_expert="always",
            capacity_factor=0.0,
        )
        kind = {"dtype": getattr(torch, dtype), "device": device}
        torch.manual_seed(1)
        mixture = MixtureOfExperts(config, 0.0, SINGLE_RANK).to(**kind)
        for weight in mixture.parameters():
            nn.init.normal_(weight, std=weight.size(1) ** -0.5)
        x, grad = torch.randn(2, tokens, d_model).to(**kind)
        return cls(mixture=mixture, x=x.clone().requires_grad_(), grad=grad)

    def ways(self, compiler: str) -> dict[str, Way]:
        """Return all ways, ours first."""
        gate, experts = self.mixture.gate, self.mixture.experts
        load = routes.largest_load(gate.logits(self.x))
        use = partial(routes.gated_experts, experts.wi, experts.wo)
        forwards = {
            "ours": self.ours(0.0),
            "ours, capacity": self.ours(load * gate.config.num_experts / len(self.x)),
            "sorted": self.routed(routes.sorted_index_add, experts=use),
            "compiled, bmm": routes.compiled(
                self.routed(routes.sorted_bins, experts=use, capacity=load), compiler
            ),
        }
        if self.x.dtype == torch.bfloat16:
            rows = self.routed(routes.sorted_gather, experts=use)
            forwards["compiled, grouped_mm"] = routes.compiled(rows, compiler)
        way = partial(Way, leaves=(self.x, gate.weight, experts.wi, experts.wo), grad=self.grad)
        ways = {name: way(forward=forward) for name, forward in forwards.items()}
        return ways | {"Mixtral block": self.mixtral()}

    def routed(self, route: Callable[..., Tensor], **options: object) -> Callable[[], Tensor]:
        """Return the forward pass with another route from the gate to the sum."""
        return lambda: route(self.x, self.mixture.gate.logits(self.x), **options)

    def ours(self, capacity_factor: float) -> Callable[[], Tensor]:
        """Return our forward pass in training; the factor 0 is no limit."""
        config = replace(self.mixture.config, capacity_factor=capacity_factor)
        sentences = Sentences.from_padded(torch.full((1, len(self.x)), 5, device=self.x.device))
        context = RoutingContext.default(1, self.x.device)

        def forward() -> Tensor:
            self.mixture.config = self.mixture.gate.config = config
            output: Tensor = self.mixture(self.x, Routes(context, sentences, sentences).sources())
            return output

        return forward

    def mixtral(self) -> Way:
        """Return Hugging Face's block with the weights of ours."""
        from transformers.models.mixtral.configuration_mixtral import MixtralConfig
        from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

        gate, wi, wo = self.mixture.gate.weight, self.mixture.experts.wi, self.mixture.experts.wo
        num_experts, d_ff, d_model = wo.shape
        sizes = {"hidden_size": d_model, "intermediate_size": d_ff, "num_local_experts": num_experts}
        block: Any = MixtralSparseMoeBlock(MixtralConfig(num_experts_per_tok=2, **sizes))
        block.gate = Float32Gate(d_model, num_experts, bias=False)
        block.to(device=wo.device, dtype=wo.dtype)
        theirs = [each.weight for expert in block.experts for each in (expert.w1, expert.w3, expert.w2)]
        ours = [weight.T for each in zip(*wi.chunk(2, dim=2), wo, strict=True) for weight in each]
        with torch.no_grad():
            for weight, value in zip((block.gate.weight, *theirs), (gate, *ours), strict=True):
                weight.copy_(value)
        leaves = (self.x, block.gate.weight, *theirs)
        return Way(forward=lambda: block(self.x[None])[0][0], leaves=leaves, grad=self.grad)


class Float32Gate(nn.Linear):
    """A gate whose logits are float32 as those of ours; in bfloat16 some tokens would choose otherwise."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return F.linear(x.float(), self.weight.float())


if __name__ == "__main__":
    smoke = {"d_model": (32,), "experts": (4,), "tokens": 64, "seconds": 0.02, "threads": 1}
    run(main, smoke=smoke | {"compiler": "eager"}, needs=("transformers",))
