r"""Whole training steps of two versions of mnmt-model, taken in turns.

Claim: a change of the model leaves its steps as fast as they were. A step is forward, backward, clipping and
Adafactor, in one thread. Each way is a process of its own with the packages of one work tree; the ways take
turns on the same batches, a step each, so that other work of the machine falls on all alike. Printed are each
way's milliseconds a step (lowest and median of the processor's time), its ratio to the first way, the loss
after the last step and, where layers are compiled, the seconds of the first steps.

    git worktree add ../before HEAD~1
    python -m benchmarks.model.steps --trees ../before . --out steps.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measurement import Figures, Names, Numbers, Out, print_table, provenance, run, write_report

SEED = 1
BATCHES = 8


@dataclass(frozen=True, kw_only=True)
class Size:
    """A T5 1.1 and its batches."""

    d_model: int
    vocab_size: int
    layers: int = 1
    num_heads: int = 1
    tokens: int = 4096
    """Source and target tokens of a batch, about."""
    phrase: int = 0
    """Source tokens of every sentence, whose target has one less; 0 for the lengths of real text."""
    options: dict[str, Any] = field(default_factory=dict)
    """Other fields of `ModelConfig`."""


SIZES = {
    "study d12": Size(d_model=12, vocab_size=24, num_heads=2, tokens=1152, phrase=5),
    "study d32": Size(d_model=32, vocab_size=24, num_heads=2, tokens=1152, phrase=5),
    "d16 v24": Size(d_model=16, vocab_size=24, num_heads=2, tokens=2048),
    "d16 v1000": Size(d_model=16, vocab_size=1_000, num_heads=2, tokens=2048),
    "d64": Size(d_model=64, vocab_size=1_000, num_heads=1),
    "d256": Size(d_model=256, vocab_size=8_000, layers=2, num_heads=4),
    "d512": Size(d_model=512, vocab_size=16_000, layers=2, num_heads=8),
    "language model": Size(
        d_model=64, vocab_size=1_000, layers=2, num_heads=4, options={"architecture": "causal-lm"}
    ),
    "experts": Size(d_model=64, vocab_size=1_000, layers=2, num_heads=4, options={"num_experts": 4}),
}


def main(
    *,
    trees: Names = (".",),
    sizes: Names = tuple(SIZES),
    rates: Numbers = (0.0, 0.1),
    compiled: bool = False,
    turns: int = 30,
    seconds: float = 20.0,
    out: Out = None,
) -> None:
    """Print a table of each size and rate of dropout.

    Args:
        trees: Work trees of the repository; the first is what the others are compared with.
        sizes: Models, among those of `SIZES`.
        rates: Rates of dropout.
        compiled: Whether to measure the last tree with compiled layers too.
        turns: Steps of each way, at most.
        seconds: Time for each size and rate, at most, after the first steps.
        out: JSON file for the figures.
    """
    ways = {str(tree): (tree, False) for tree in trees}
    if compiled:
        ways["compiled"] = (trees[-1], True)
    rows = []
    for name in sizes:
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            write_batches(SIZES[name], Path(file.name))
            for rate in rates:
                case = {"size": name, "dropout": rate, "batches": file.name}
                rows += compare(ways, case, turns=turns, seconds=seconds)
                print_table(rows[-len(ways) :])
    write_report(out, "whole training steps, 1 thread", {"rows": rows}, provenance("mnmt-model", "torch"))


def write_batches(size: Size, path: Path) -> None:
    """Write batches as padded tables of token ids."""
    # Not for the workers, whose tree may have another mnmt-data.
    from benchmarks.model.training_data import open_data

    if size.phrase:
        shape = (size.tokens // (2 * size.phrase - 1), size.phrase)
        draws = np.random.default_rng(SEED).integers(2, size.vocab_size, (2 * BATCHES, *shape))
        tables = {f"src{i}": draws[i] for i in range(BATCHES)}
        tables |= {f"tgt{i}": draws[BATCHES + i, :, 1:] for i in range(BATCHES)}
    else:
        cycle = open_data(None, vocab_size=size.vocab_size, batch_tokens=size.tokens).cycle(BATCHES)
        parts = [cycle.read(i).parts[0] for i in range(BATCHES)]
        tables = {f"src{i}": part.src for i, part in enumerate(parts)}
        tables |= {f"tgt{i}": part.tgt for i, part in enumerate(parts)}
    np.savez(path, **tables)


def compare(ways: dict[str, tuple[str, bool]], case: Figures, *, turns: int, seconds: float) -> list[Figures]:
    """Return a row for each way."""
    workers = [Worker(tree, {**case, "compile": is_compiled}) for tree, is_compiled in ways.values()]
    first = [sum(worker.step(i)["seconds"] for i in range(BATCHES)) for worker in workers]
    for worker in workers:
        for i in range(BATCHES):
            worker.step(i)
    steps: list[list[Figures]] = [[] for _ in workers]
    end = time.perf_counter() + seconds
    for turn in range(turns):
        for worker, taken in zip(workers, steps, strict=True):
            taken.append(worker.step(turn))
        if time.perf_counter() > end and turn % BATCHES == BATCHES - 1:
            break
    for worker in workers:
        worker.close()
    rows = []
    for name, taken, start in zip(ways, steps, first, strict=True):
        times = [each["seconds"] for each in taken]
        pairs = [each / base["seconds"] for each, base in zip(times, steps[0], strict=True)]
        rows.append(
            {
                "size": case["size"],
                "dropout": case["dropout"],
                "way": name,
                "lowest ms": round(1e3 * lowest(times), 2),
                "median ms": round(1e3 * median(times), 2),
                "lowest / first": round(lowest(times) / lowest([each["seconds"] for each in steps[0]]), 3),
                "median / first": round(median(pairs), 3),
                "first steps s": round(start, 1),
                "loss": taken[-1]["loss"],
            }
        )
    return rows


def lowest(times: list[float]) -> float:
    """Return the mean over the batches of the shortest time of each."""
    return float(np.mean([min(times[i::BATCHES]) for i in range(BATCHES) if times[i::BATCHES]]))


class Worker:
    """A process that takes steps with the packages of one tree when it is asked to."""

    def __init__(self, tree: str, case: Figures) -> None:
        packages = [str(path) for path in sorted(Path(tree).resolve().glob("packages/*/src"))]
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([*packages, root, os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", f"from {__spec__.name} import work; work()", json.dumps(case)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )

    def step(self, number: int) -> Figures:
        """Return the seconds and the loss of a step."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(number, file=self.process.stdin, flush=True)
        figures: Figures = json.loads(self.process.stdout.readline())
        return figures

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work() -> None:
    """Take steps as the numbers on standard input say."""
    import torch

    from mnmt_model import ModelConfig, TrainConfig, build_model
    from mnmt_model.distributed import World
    from mnmt_model.optim import clip_gradients, make_optimizer
    from mnmt_model.training import make_trainable
    from mnmt_model.transformer import Sentences, initialise

    case = json.loads(sys.argv[-1])
    torch.set_num_threads(1)
    size = SIZES[case["size"]]
    config = ModelConfig(
        encoder_layers=None if size.options.get("architecture") else size.layers,
        decoder_layers=size.layers,
        d_model=size.d_model,
        num_heads=size.num_heads,
        d_ff=4 * size.d_model,
        **size.options,
    )
    train = TrainConfig(batch_tokens=size.tokens, dropout=case["dropout"], compile=case["compile"])
    model = build_model(config, size.vocab_size, dropout=case["dropout"])
    initialise(model, SEED)
    products = measured_products(model, config, size, train, case)
    trainable = make_trainable(model, train, World(device=torch.device("cpu")))
    optimizer = make_optimizer(model, train)
    params = list(model.parameters())
    model.train()
    tables = np.load(case["batches"])
    for line in sys.stdin:
        number = int(line)
        torch.manual_seed(number)
        begin = time.process_time()
        src, tgt = (
            Sentences.from_padded(torch.from_numpy(tables[f"{side}{number % BATCHES}"]))
            for side in ("src", "tgt")
        )
        losses = trainable(src, tgt)
        loss = losses.objective / tgt.num_tokens
        loss.backward()
        clip_gradients(params, 1.0, *products)
        optimizer.step()
        for parameter in params:
            parameter.grad = None
        seconds = time.process_time() - begin
        print(json.dumps({"seconds": seconds, "loss": float(loss.detach())}), flush=True)


def measured_products(model: Any, config: Any, size: Size, train: Any, case: Figures) -> list[Any]:
    """Use the ways of products that older versions measure; return the further arguments of clipping."""
    try:
        from mnmt_model.runs.kernels import training_products
    except ImportError:
        return []
    products = training_products(config, size.vocab_size, train)
    model.use_products(products)
    return [products]


if __name__ == "__main__":
    run(main, smoke={"sizes": ("study d12",), "turns": 2, "rates": (0.1,)})
