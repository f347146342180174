"""How far the end of a training moves when its products are computed in other ways, and with another seed.

Claim: which library computes a product is measured on each machine and changes last bits; training makes
their differences grow, from the seventh digit after 30 steps to a tenth of a percent after 2,000, still less
than another seed makes. No peer. Cited in docs/model/resuming.md and docs/studies/synthetic.md.

A run of studies/synthetic.toml is trained several times, each with an empty store of measurements, and once
with each seed and the measurements of the first.

    python -m benchmarks.model.rounding --out benchmarks/results/model/rounding.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, write_changed_study

STUDY = Path(__file__).parents[2] / "studies" / "synthetic.toml"


def main(
    *,
    sizes: Names = ("d12", "d24"),
    lengths: Counts = (30, 2000),
    times: int = 5,
    sentences: int = 550_000,
    words: int = 16,
    out: Out = None,
) -> None:
    """Train, and print a table.

    Args:
        sizes: Models of the study.
        lengths: Training steps.
        times: How often a run is trained with other measurements, and the number of seeds.
        sentences: Training pairs of each task.
        words: Words of each language.
        out: JSON file for the figures.
    """
    rows = []
    with TemporaryDirectory() as temporary:
        for steps in lengths:
            study = write_study(Path(temporary) / str(steps), steps, times, sentences, words)
            prepare(study, study.parent / "results")
            rows += [row for size in sizes for row in spreads(study, size, times)]
    print_table([{name: _short(value) for name, value in row.items()} for row in rows])
    description = provenance("mnmt-data", "mnmt-model", "torch")
    write_report(out, "standard deviation of test losses, nats a token", {"results": rows}, description)


def write_study(folder: Path, steps: int, seeds: int, sentences: int, words: int) -> Path:
    """Write the study with one training length and several seeds; return its file."""
    changes = {
        "\nhorizons = [1000, 2000]": f"\nhorizons = [{steps}]",
        "\ncooldown_steps = 1000": f"\ncooldown_steps = {steps // 2}",
        "warmup_steps = 100": f"warmup_steps = {min(100, steps // 4)}",
        "train_sentences = 550_000": f"train_sentences = {sentences}",
        "\nwords = 16": f"\nwords = {words}",
        "[sweep.sizes]": f"[sweep]\nseeds = {list(range(1, seeds + 1))}\n\n[sweep.sizes]",
    }
    return write_changed_study(folder / "rounding.toml", STUDY, changes)


def spreads(study: Path, size: str, times: int) -> Iterator[Figures]:
    """Yield, for each task, how losses differ between measurements of one seed, and between seeds."""
    numbers = range(1, times + 1)
    anew = [trained(study, size, seed=1, measured=number) for number in numbers]
    seeds = [anew[0], *(trained(study, size, seed=seed, measured=1) for seed in numbers[1:])]
    for what, runs in (("measured anew", anew), ("seeds", seeds)):
        for task in ("xx-aa", "xx-bb"):
            losses = [losses_of(folder)[task] for folder in runs]
            limit = _record(runs[0])["irreducible"][task]
            yield {
                "size": size, "steps": _record(runs[0])["config"]["train"]["steps"], "task": task,
                "what differs": what, "runs": len(runs), "ways that differ": ways_that_differ(runs),
                "mean loss": mean(losses), "deviation": stdev(losses), "range": max(losses) - min(losses),
                "deviation / loss above the entropy": stdev(losses) / (mean(losses) - limit),
            }  # fmt: skip


def trained(study: Path, size: str, *, seed: int, measured: int) -> Path:
    """Train a run with the store of measurements of a number; return the folder of its record."""
    name = f"{size}_xx-aa-0.5_xx-bb-0.5_seed{seed}"
    results = study.parent / f"measured-{measured}"
    if not (results / "data").exists():
        results.mkdir()
        (results / "data").symlink_to(study.parent / "results/data")
    store = {"XDG_CACHE_HOME": str(results / "store")}
    command = [sys.executable, "-m", "mnmt_model", "train", str(study), name, "--out", str(results)]
    subprocess.run(command, check=True, env=os.environ | store, capture_output=True)
    return results / "runs" / name


def losses_of(folder: Path) -> dict[str, float]:
    """Return the test loss of each task at the end."""
    lines = (folder / "evals.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["task"]: row["value"] for row in rows if (row["testset"], row["metric"]) == ("test", "loss")}


def ways_that_differ(runs: list[Path]) -> int:
    """Return how many products and operations were not computed alike in all runs."""
    ways = [(_record(folder)["kernels"] or {"ways": {}})["ways"] for folder in runs]
    return sum(len({each.get(product) for each in ways}) > 1 for product in ways[0])


def _record(folder: Path) -> Figures:
    record: Figures = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record


def _short(value: object) -> object:
    return f"{value:.3g}" if isinstance(value, float) else value


if __name__ == "__main__":
    run(main, smoke={"sizes": ("d8",), "lengths": (4,), "times": 2, "sentences": 2000, "words": 4})
