"""When the choices of experts part in runs of one study that differ in how two processes share the work.

Claim: docs/moe/scaling-out.md, "What is the same, and what is not". No peer.

Two processes train the page's study with DDP, with `expert_parallel`, and with FSDP2 and chunks. All take the
same tokens at each step. The script compares the choices of every token with those of the first way: in which
step one differs for the first time, and how far the logits differ then.
Without torchrun, the benchmark starts its own processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.measurement import Counts, Figures, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, write_text
from mnmt_data import read_study
from mnmt_model import run_configs, train
from mnmt_model.distributed import join_world
from mnmt_model.transformer.experts.gate import Gate
from mnmt_model.transformer.experts.routes import TokenRoutes

RANKS = 2
STUDY = """
name = "spread"
[data]
tasks = ["xx-aa", "xx-bb"]
[data.synthetic]
languages = ["aa", "bb"]
concepts = 200
train_sentences = 20_000
[data.vocab]
kind = "word"
size = 300
[model]
decoder_layers = 1
d_model = 32
num_heads = 2
d_ff = 64
num_experts = 4
experts_every = 1
[train]
steps = {steps}
batch_tokens = 2048
warmup_steps = 10
log_every = 20
checkpoint_every = {steps}
[sweep.sizes]
four = {{}}
[sweep.fit]
sizes = ["four"]
mixtures = [{{ xx-aa = 0.5, xx-bb = 0.5 }}]
"""
WAYS: dict[str, dict[str, Any]] = {
    "DDP": {},
    "expert_parallel = 2": {"expert_parallel": RANKS},
    "the same, FSDP2, 2 chunks": {"expert_parallel": RANKS, "parallel": "fsdp", "exchange_chunks": 2},
}

Passes = list[tuple[Tensor, Tensor]]
"""The logits and the choices of the tokens of each pass through a mixture, in the order of passes."""


def main(
    *,
    steps: int = 60,
    seeds: Counts = (1, 2, 3),
    folder: Path = Path("results/benchmark-near-ties"),
    out: Out = None,
) -> None:
    """Print a row for each seed and way.

    Args:
        steps: Steps of each run.
        seeds: Seeds of the runs.
        folder: Where data and runs are put; runs must not be there yet.
        out: JSON file for the figures.
    """
    study = folder / "spread.toml"
    if "RANK" not in os.environ:
        prepare(write_text(study, STUDY.format(steps=steps)), folder)
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(RANKS),
        ]
        subprocess.run([*command, "-m", "benchmarks.moe.near_ties", *sys.argv[1:]], check=True)
        return
    torch.set_num_threads(1)
    figures = []
    with join_world() as world:
        for seed in seeds:
            passes = {way: choices(study, folder, way, seed) for way in WAYS}
            first, *others = passes
            figures += [
                {"seed": seed, "way": way, **compare(passes[first], passes[way], steps)} for way in others
            ]
    if world.is_first:
        print_table(figures)
        write_report(
            out,
            "steps at which choices of experts part",
            {"steps": steps, "results": figures},
            provenance("mnmt-model", "mnmt-moe-ext", "torch"),
        )


def choices(study: Path, folder: Path, way: str, seed: int) -> Passes:
    """Train a run, and return what its gates decided in this process."""
    config = run_configs(read_study(study), folder / "data")[0]
    config = replace(config, seed=seed, train=replace(config.train, **WAYS[way]))
    with logged_gates() as passes:
        train(config, folder / "runs" / f"{list(WAYS).index(way)}-{seed}")
    return passes


@contextmanager
def logged_gates() -> Iterator[Passes]:
    """Take down the logits and choices of every pass in training."""
    passes: Passes = []
    logits, record = Gate.logits, TokenRoutes.record
    newest: list[Tensor] = []

    def logged_logits(gate: Gate, x: Tensor) -> Tensor:
        newest[:] = [logits(gate, x)]
        return newest[0]

    def logged_record(routes: TokenRoutes, layer: int, routing: Any) -> None:
        passes.append((newest[0].detach().clone(), routing.experts[0].clone()))
        record(routes, layer, routing)

    with patch.object(Gate, "logits", logged_logits), patch.object(TokenRoutes, "record", logged_record):
        yield passes


def compare(first: Passes, other: Passes, steps: int) -> Figures:
    """Return where the choices of both processes part; a step has as many passes as any other."""
    # Before the first step, each process computes one pair to fix DDP's buckets.
    per_step = len(first) // (steps + 1)
    pairs = list(zip(first[per_step:], other[per_step:], strict=True))
    tokens = torch.tensor([len(ours[0]) for ours, _ in pairs])
    parted = torch.tensor([int((ours[1] != theirs[1]).any(dim=1).sum()) for ours, theirs in pairs])
    differences = torch.stack([(ours[0] - theirs[0]).abs().max() for ours, theirs in pairs])
    dist.all_reduce(tokens)
    dist.all_reduce(parted)
    dist.all_reduce(differences, dist.ReduceOp.MAX)
    has_parted = bool(parted.any())
    end = int(parted.nonzero()[0]) if has_parted else len(pairs) - 1
    by_step = differences.view(steps, per_step).amax(dim=1)
    before = {f"logits_step_{step}": by_step[step - 1] for step in (1, 2, 10) if step <= end // per_step}
    return {
        "first_step": end // per_step + 1 if has_parted else None,
        "decisions_before": int(tokens[:end].sum()),
        **{name: f"{float(each):.0e}" for name, each in before.items()},
        "logits_then": f"{float(differences[end]):.0e}",
        "tokens_then": int(parted[end]),
        "share_in_last_step": round(float(parted[-per_step:].sum() / tokens[-per_step:].sum()), 4),
    }


if __name__ == "__main__":
    run(main, smoke={"steps": 12, "seeds": (1,)})
