r"""Self-attention in C++ on sentences without padding, against torch's on padded tables.

Claim: attention that reads a sentence's rows where they lie, and computes no padding, is faster than torch's
operators on padded tables, for sentences of five words as for those of real text. Peers: mnmt-model's own
path with torch's operators (`torch`), and torch's fused operator with the same tables (`fused`). Cited in
docs/model/measured.md.

Forward and backward pass of `softmax(q kᵀ + bias) v` from joint queries, keys and values to the result for
each token, padding and all that belongs to it included; the bias is one of relative positions and gets its
gradient. One thread, float32, with and without dropout. Contestants take turns, and the thread's own time is
taken, so that other work of the machine falls on all alike and hardly counts. Printed are medians, and ratios
of the same turn with their lowest and highest. `short` are 512 sentences of 5 or 6 tokens, `text` about 4,096
tokens in sentences of log-normal lengths (2.7 ± 0.8).

    python -m benchmarks.model.attention --out benchmarks/results/model/attention.json
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from benchmarks.measurement import (
    Counts,
    Figures,
    Numbers,
    Out,
    print_table,
    provenance,
    ratios,
    run,
    write_report,
)
from mnmt_model.transformer.attention import RelativePositionBias, padding_bias
from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.operations import Spans, attention, dropout_mask, ragged_attention
from mnmt_model.transformer.sentences import Sentences

LONGEST = 128
"""Tokens of the longest sentence of text."""


class Case(NamedTuple):
    """Sentences, and the outputs of a joint map of their tokens."""

    sentences: Sentences
    outputs: Tensor
    """`(num_tokens, 3 * num_heads * head_dim)`, queries, keys and values side by side."""
    positions: RelativePositionBias
    heads: int
    rate: float

    def ours(self) -> Tensor:
        """Attend in C++."""
        bias = self.positions.by_distance(self.sentences.width)
        spans = Spans.between(self.sentences, self.sentences, bias=bias)
        return ragged_attention(self.outputs, None, spans, num_heads=self.heads, scale=1.0, rate=self.rate)

    def torchs(self) -> Tensor:
        """Attend with torch's operators, one after the other."""
        table, bias = self.padded()
        batch, heads, width = table.size(1), self.heads, self.sentences.width
        mask = dropout_mask((batch * heads, width, width), self.rate, table) if self.rate else None
        return self.flat(attention(table[0], table[1], table[2], bias, scale=1.0, mask=mask))

    def fused(self) -> Tensor:
        """Attend with torch's fused operator."""
        table, bias = self.padded()
        attended = F.scaled_dot_product_attention(
            table[0], table[1], table[2], attn_mask=bias, dropout_p=self.rate, scale=1.0
        )
        return self.flat(attended)

    def padded(self) -> tuple[Tensor, Tensor]:
        """Return the heads of queries, keys and values in padded tables, and the bias of their scores."""
        of = self.sentences
        table = of.pad(self.outputs).view(of.batch, of.width, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return table, self.positions(of.width, of.width)[None] + padding_bias(of.padding_mask, table.dtype)

    def flat(self, attended: Tensor) -> Tensor:
        """Return what tokens attended, `(num_tokens, num_heads * head_dim)`."""
        return self.sentences.flatten(attended.transpose(1, 2).flatten(2))


def main(
    *,
    short_dims: Counts = (6, 12, 24),
    text_heads: Counts = (1, 4, 8, 12),
    rates: Numbers = (0.0, 0.1),
    turns: int = 5,
    out: Out = None,
) -> None:
    """Print a line for each case.

    Args:
        short_dims: Widths of a head for short sentences, with two heads.
        text_heads: Numbers of heads for text, of 64 each.
        rates: Rates of dropout.
        turns: Forward and backward passes of each contestant.
        out: JSON file for the figures.
    """
    if not has_library():
        print("Skipped: a C++ compiler must be installed.")
        return
    torch.set_num_threads(1)
    rows: list[Figures] = []
    for rate in rates:
        rows += [row("short", short_lengths(), 2, head_dim, rate, turns) for head_dim in short_dims]
        rows += [row("text", text_lengths(), heads, 64, rate, turns) for heads in text_heads]
    print_table(rows)
    what = "milliseconds of self-attention, forward and backward, 1 thread"
    write_report(out, what, {"cases": rows}, provenance("mnmt-model", "torch"))


def short_lengths() -> Tensor:
    """Return 512 lengths of 5 or 6."""
    return torch.from_numpy(np.random.default_rng(0).integers(5, 7, 512))


def text_lengths() -> Tensor:
    """Return log-normal lengths with about 4,096 tokens."""
    lengths = np.exp(np.random.default_rng(0).normal(2.7, 0.8, 1000)).clip(1, LONGEST).astype(int)
    return torch.from_numpy(lengths[: int(np.searchsorted(lengths.cumsum(), 4096))])


def row(name: str, lengths: Tensor, heads: int, head_dim: int, rate: float, turns: int) -> Figures:
    """Return a line of the table."""
    sentences = Sentences.from_padded((torch.arange(int(lengths.max())) < lengths[:, None]).long())
    outputs = torch.randn(sentences.num_tokens, 3 * heads * head_dim, requires_grad=True)
    positions = RelativePositionBias(heads, bidirectional=True)
    torch.nn.init.normal_(positions.weight)
    case = Case(sentences, outputs, positions, heads, rate)
    times = race({"ours": case.ours, "torch": case.torchs, "fused": case.fused}, case, turns)
    speed = {
        f"{peer} {key}": value
        for peer in ("torch", "fused")
        for key, value in ratios(times[peer], times["ours"]).items()
    }
    milliseconds = {way: round(1e3 * median(each), 2) for way, each in times.items()}
    return {"sentences": name, "heads": heads, "head_dim": head_dim, "dropout": rate, **milliseconds, **speed}


def race(contestants: Mapping[str, Callable[[], Tensor]], case: Case, turns: int) -> dict[str, list[float]]:
    """Return the seconds of each contestant's turns, after one that does not count."""
    gradient = torch.randn(len(case.outputs), case.outputs.size(1) // 3)
    inputs = (case.outputs, case.positions.weight)
    times: dict[str, list[float]] = {way: [] for way in contestants}
    for _ in range(turns + 1):
        for way, attend in contestants.items():
            start = time.thread_time()
            torch.autograd.grad(attend(), inputs, gradient)
            times[way].append(time.thread_time() - start)
    return {way: each[1:] for way, each in times.items()}


if __name__ == "__main__":
    run(main, smoke={"short_dims": (6,), "text_heads": (1,), "turns": 1})
