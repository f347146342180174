r"""All ratios of speed that the package claims, in one run on one machine.

Claims: the measured choice of matrix products is never slower than torch's own or a rule by the processor's
instructions; ours trains a T5 twice as fast as Hugging Face transformers; at d 64 a step reaches 35% of the
product peak. Cited in docs/model/measured.md.

The measurements are those of `products`, `training_speed` and `step_profile`, which say what is
compared, and what the parts of a step are. Contestants take turns, a step each. A ratio is how many times
longer the other one took in the same turn: median, lowest and highest. `limit` is the share of the peak at
which the model's products alone, each in its fastest way, would run. The load is the mean number of processes
that ran or waited in a minute.

    pip install transformers packages/mnmt-moe-ext
    python -m benchmarks.model.ratios --out benchmarks/results/model/ratios.json

It takes about 15 minutes on two cores, and stores each part when it is done. Parts that the file has from
this machine, these sources and options are not measured again. `--only d16 "training d64"` measures the
parts whose names have one of these in them.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import xxhash

import mnmt_model
from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.model import products
from benchmarks.model.step_profile import limit_seconds, profile_case
from benchmarks.model.trainers import Case, OurTrainer
from benchmarks.model.training_data import TrainingData, open_data
from benchmarks.model.training_speed import (
    ADAMW,
    MAIN_CASES,
    OURS,
    SAME,
    SIZES,
    Size,
    compare,
    flops_per_token,
)

PACKAGES = ("mnmt-model", "mnmt-moe-ext", "torch", "transformers", "numpy")
WHAT = "ratios of speed"

SHARES = {"d64": 0.35}
"""{model: the share of the product peak that is aimed at, in float32}."""
TWICE = 2.0
NOISE = 0.03
"""A way is as fast as another if its median is no further below."""

PRODUCT_SECONDS = {"d16": 6, "d64": 8, "d256": 12, "d512": 20, "d768": 30}
TRAINING_SECONDS = {"d64": 10, "d256": 15, "d512": 25, "d768": 45}
PROFILE_TURNS = {"d64": 10, "d256": 4, "d512": 3}
"""What the parts of each model take in `MINUTES`, each case; first steps and compilation come on top."""
MINUTES = 15.0

PRODUCT_TOKENS = 2048

MOST_STEPS = 200

Part = Callable[[], list[Figures]]


def main(
    *,
    only: Names = (),
    minutes: float = MINUTES,
    batch_tokens: int = 4096,
    threads: int = 1,
    out: Out = None,
) -> None:
    """Print a table of all ratios.

    Args:
        only: Beginnings or other pieces of names of parts to measure; by default all are.
        minutes: Time of all parts, about.
        batch_tokens: Source and target tokens of a batch beside transformers; d 768 has half of them.
        threads: Threads of torch; with one, the processor's time is taken.
        out: JSON file for the figures, to which each part is added when it is done.
    """
    options = {"minutes": minutes, "batch_tokens": batch_tokens, "threads": threads}
    with tempfile.TemporaryDirectory() as folder:
        # Products are measured as on a machine that has trained nothing yet.
        os.environ["XDG_CACHE_HOME"] = folder
        parts = {
            name: part
            for name, part in all_parts(batch_tokens, minutes / MINUTES).items()
            if not only or any(words in name for words in only)
        }
        print(f"{len(parts)} parts, about {minutes:g} minutes for all; load {os.getloadavg()[0]:.1f}")
        measured = measure(parts, options, out)
    print(f"\n{provenance(*PACKAGES)}\n")
    rows = [row for part in measured.values() for row in part["rows"]]
    print_table([row for row in rows if "ratio" in row])
    print("Milliseconds of a step, one thread:\n")
    print_table([row for row in rows if "ratio" not in row])


def all_parts(batch_tokens: int, scale: float) -> dict[str, Part]:
    """Return {name: what measures it}."""
    parts: dict[str, Part] = {}
    for name in products.SIZES:
        seconds = scale * PRODUCT_SECONDS[name.partition(",")[0]]
        parts[f"products {name}"] = partial(product_rows, name, seconds=seconds)
    for name, size in SIZES.items():
        for case in MAIN_CASES:
            seconds, tokens = scale * TRAINING_SECONDS[name], batch_tokens // (2 if name == "d768" else 1)
            parts[f"training {name}, {case}"] = partial(
                training_rows, name, size, case, tokens, seconds=seconds
            )
    for name, turns in PROFILE_TURNS.items():
        turns = max(2, round(scale * turns))
        parts[f"profile {name}"] = partial(profile_rows, name, SIZES[name], batch_tokens, turns=turns)
    return parts


def measure(parts: Mapping[str, Part], options: Figures, out: Path | None) -> dict[str, Figures]:
    """Return {name: its rows, seconds and load} of these parts; those that the file has are taken from it."""
    measured = stored_parts(options, out)
    for number, (name, part) in enumerate(parts.items(), start=1):
        state = "was measured before" if name in measured else "is measured"
        print(f"[{number}/{len(parts)}] {name} {state}", flush=True)
        if name not in measured:
            start, load = time.perf_counter(), os.getloadavg()[0]
            torch.set_num_threads(options["threads"])
            rows = part()
            seconds = round(time.perf_counter() - start)
            load_after = round(os.getloadavg()[0], 2)
            measured[name] = {"rows": rows, "seconds": seconds, "load": [round(load, 2), load_after]}
            print_table(rows)
            figures = {"options": options, "sources": sources(), "parts": measured}
            write_report(out, WHAT, figures, provenance(*PACKAGES))
    return {name: measured[name] for name in parts}


def stored_parts(options: Figures, out: Path | None) -> dict[str, Figures]:
    """Return the parts that the file has of this machine, this package and these options."""
    if out is None or not out.exists():
        return {}
    report = json.loads(out.read_text(encoding="utf-8"))
    now = provenance(*PACKAGES) | {"options": options, "sources": sources()}
    parts: dict[str, Figures] = report["parts"]
    if all(report.get(key) == now[key] for key in ("machine", "versions", "options", "sources")):
        return parts
    print(f"{out} has figures of another machine, package or options: all parts are measured.", flush=True)
    return {}


def sources() -> str:
    """Return a checksum of mnmt-model's source files."""
    files = sorted(Path(mnmt_model.__file__).parent.rglob("*"))
    texts = [file.read_bytes() for file in files if file.suffix in (".py", ".cpp", ".h")]
    return xxhash.xxh3_64_hexdigest(b"\0".join(texts))


def product_rows(name: str, *, seconds: float) -> list[Figures]:
    """Return how many times longer steps take with other ways of products and operations than as measured."""
    figures = products.measure_size(name, "float32", PRODUCT_TOKENS, seconds)
    peers = {"rule": "products by the rule", "torch": "products by torch"}
    peers |= {"torch's operations": "operations by torch"}
    rows = [row(name, what, figures["steps"][way], goal=1.0) for way, what in peers.items()]
    rows.append(row(name, "the same again", figures["steps"]["the same again"]))
    return [*rows, row(name, "seconds of measuring", {"ratio": figures["seconds_to_measure"]})]


def training_rows(name: str, size: Size, case: Case, batch_tokens: int, *, seconds: float) -> list[Figures]:
    """Return how many times longer transformers takes, and our share of the peak with its limit."""
    data = open_data(None, vocab_size=size.vocab_size, batch_tokens=batch_tokens)
    measured = compare(size, case, data, steps=MOST_STEPS, seconds=seconds)
    model, is_goal = f"{name}, {case}", case.precision == "float32"
    ours = measured[OURS]
    limit = limit_of(size, case, data, ours["peak_gflops"] * 1e9)
    lowest, highest = ours["share_range"]
    share = {"ratio": ours["share_of_peak"], "lowest": lowest, "highest": highest, "limit": limit}
    rows = [row(model, "share of the product peak", share, goal=SHARES.get(name) if is_goal else None)]
    if SAME in measured:
        rows.insert(0, row(model, "transformers", measured[SAME], goal=TWICE if is_goal else None))
    return rows


def limit_of(size: Size, case: Case, data: TrainingData, peak: float) -> float:
    """Return the share of the peak that a step's products reach alone, each in its fastest way."""
    trainer = OurTrainer(size.model, size.vocab_size, case, data, batches=1)
    flops = flops_per_token(size, data, 1) * trainer.tokens(0)
    return round(flops / limit_seconds(trainer) / peak, 3)


def profile_rows(name: str, size: Size, batch_tokens: int, *, turns: int) -> list[Figures]:
    """Return the milliseconds of the parts of a step, with one thread."""
    torch.set_num_threads(1)
    data = open_data(None, vocab_size=size.vocab_size, batch_tokens=batch_tokens)
    return [{"model": name, **profile_case(size, ADAMW, data, turns)["milliseconds"]}]


def row(model: str, what: str, figures: Mapping[str, Any], *, goal: float | None = None) -> Figures:
    """Return a row of the table of ratios."""
    names = ("ratio", "lowest", "highest", "limit")
    values = {name: figures[name] for name in names if figures.get(name) is not None}
    least = None if goal is None else goal * (1 - NOISE) if goal == 1 else goal
    verdict = {} if least is None else {"goal": goal, "reached": values["ratio"] >= least}
    return {"model": model, "what": what, **values, **verdict}


if __name__ == "__main__":
    run(main, smoke={"only": ("products d16", "profile d64"), "minutes": 0.1, "batch_tokens": 512})
