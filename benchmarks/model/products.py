r"""Which way each matrix product takes on this processor, and on what it can pretend to be.

Claim: a measurement of about two seconds chooses well on any processor, where a rule by the processor's
instructions (oneDNN for matrices of at least 8,192 weights under AVX-512, MKL otherwise) does not. Cited in
docs/model/measured.md.

For each model the products are measured without a cache; printed are each way's time, what was chosen and
what the rule takes. Then whole training steps are timed with the chosen ways, with products by the rule, with
products by torch, and with torch's operations in place of those in C++. They take turns, a step each, so that
other work of the machine falls on all of them; with one thread the processor's time is taken, which it hardly
touches. Printed are medians, and how many times longer a step took than with the measured ways: median,
lowest and highest. A second model with the measured ways shows how far this scatters.

Other processors are emulated in new processes, as far as that goes: oneDNN may be held to AVX2, and so may
torch's own kernels; and MKL, which on AMD's processors uses half of their vectors' width, takes its path for
Intel's once a preloaded library says that this is one (which needs a C compiler). With that, and oneDNN held
to AVX2, MKL is the faster one. No processor but the one named in the report is measured.

    pip install packages/mnmt-moe-ext
    python -m benchmarks.model.products --out benchmarks/results/model/products.json
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import torch

from benchmarks.measurement import (
    Figures,
    Names,
    Out,
    print_table,
    provenance,
    ratios,
    run,
    write_report,
)
from benchmarks.model.trainers import Case, OurTrainer, timed_step
from benchmarks.model.training_data import TrainingData, open_data
from mnmt_model import ModelConfig
from mnmt_model.runs.kernels import training_products
from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.products import EXPERTS, SINGLE, Products, Shape
from mnmt_model.transformer.products.cache import read_times
from mnmt_model.transformer.products.ways import WAYS

BATCHES = 2
"""Batches that come again and again, each once before the first timed step."""
LEAST_STEPS = 4
RULE_WEIGHTS = 2**13

INTEL = "MKL as on Intel's"
"""The emulation that preloads a library."""

EMULATIONS: Mapping[str, Mapping[str, str]] = {
    "as it is": {},
    "oneDNN with AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "all with AVX2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    INTEL: {},
    f"{INTEL}, oneDNN with AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
}
"""{name: variables of the environment}."""


def t5(d_model: int, *, num_experts: int = 0) -> ModelConfig:
    """Return one layer a side, with experts in the decoder's if there are any."""
    return ModelConfig(
        encoder_layers=1,
        decoder_layers=1,
        d_model=d_model,
        num_heads=max(1, d_model // 64),
        d_ff=4 * d_model,
        num_experts=num_experts,
        experts_every=1,
    )


SIZES: Mapping[str, tuple[ModelConfig, int]] = {
    "d16": (t5(16), 200),
    "d64": (t5(64), 1_000),
    "d256": (t5(256), 4_000),
    "d512": (t5(512), 8_000),
    "d768": (t5(768), 16_000),
    "d64, 8 experts": (t5(64, num_experts=8), 1_000),
    "d256, 8 experts": (t5(256, num_experts=8), 4_000),
}
"""{name: (model, size of its vocabulary)}."""

EMULATED = ("d64", "d256", "d256, 8 experts")
"""The sizes that are measured as other processors too."""


def main(
    *,
    sizes: Names = tuple(SIZES),
    emulations: Names = tuple(EMULATIONS),
    precision: str = "float32",
    batch_tokens: int = 2048,
    seconds: float = 8.0,
    threads: int = 1,
    child: bool = False,
    out: Out = None,
) -> None:
    """Print the tables of products and steps of each emulation.

    Args:
        sizes: The models.
        emulations: The emulations, each in a process of its own.
        precision: "float32" or "bfloat16".
        batch_tokens: Source and target tokens of a batch, on average.
        seconds: Time of the steps of a model, about.
        threads: Threads of torch.
        child: Whether to measure here, and print the figures as JSON last.
        out: JSON file for the figures.
    """
    if child:
        torch.set_num_threads(threads)
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
        figures = {name: measure_size(name, precision, batch_tokens, seconds) for name in sizes}
        shutil.rmtree(os.environ["XDG_CACHE_HOME"])
        print(json.dumps(figures))
        return
    options = ["--precision", precision, "--batch-tokens", str(batch_tokens)]
    options += ["--seconds", str(seconds), "--threads", str(threads)]
    measured: Figures = {}
    for name in emulations:
        some = (
            sizes if not EMULATIONS[name] and name != INTEL else [each for each in sizes if each in EMULATED]
        )
        if some and (there := emulated(name, [*options, "--sizes", *some])) is not None:
            measured[name] = there
            report(name, there)
    what = f"products and steps of {batch_tokens} tokens, {precision}, {threads} threads"
    write_report(out, what, {"emulations": measured}, provenance("mnmt-model", "torch", "numpy"))


def emulated(name: str, options: Sequence[str]) -> Figures | None:
    """Return what a new process measures as another processor; None if it cannot be emulated."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, **EMULATIONS[name]}
        if name.startswith(INTEL):
            library = intel_library(Path(folder))
            if library is None:
                print(f"{name}: skipped, needs a C compiler.", flush=True)
                return None
            environ["LD_PRELOAD"] = str(library)
        command = [sys.executable, "-m", "benchmarks.model.products", "--child", *options]
        output = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def intel_library(folder: Path) -> Path | None:
    """Compile the library that tells MKL that the processor is Intel's; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = folder / "intel.c", folder / "intel.so"
    source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def measure_size(name: str, precision: str, batch_tokens: int, seconds: float) -> Figures:
    """Return times and choices of a model's products, and times of its steps."""
    (model, vocab_size), case = SIZES[name], Case(precision=precision)  # type: ignore[arg-type]
    # Operations are compiled once a machine.
    has_library()
    start = time.perf_counter()
    measured = training_products(model, vocab_size, case.config(batch_tokens))
    cost = time.perf_counter() - start
    times = read_times()
    rule = {shape: rule_way(shape) for shape in measured.ways if is_product(shape)}
    torchs = {shape: WAYS[shape.kind][0] for shape in measured.ways}
    operations = {shape: way for shape, way in measured.ways.items() if not is_product(shape)}
    tables = {
        "measured": measured,
        "the same again": measured,
        "rule": Products(ways={**operations, **rule}),
        "torch": Products(ways={**torchs, **operations}),
        "torch's operations": Products(ways={**measured.ways, **{each: torchs[each] for each in operations}}),
    }
    data = open_data(None, vocab_size=vocab_size, batch_tokens=batch_tokens)
    return {
        "seconds_to_measure": round(cost, 2),
        "products": {
            str(shape): {
                "microseconds": {each: round(second * 1e6, 1) for each, second in times[shape].items()},
                "measured": way,
                "rule": rule.get(shape, way),
            }
            for shape, way in measured.ways.items()
        },
        "steps": measure_steps(model, vocab_size, case, data, tables, seconds),
    }


def is_product(shape: Shape) -> bool:
    """Return whether a shape is that of products, and not of another operation."""
    return shape.kind in (*SINGLE, "linear", *EXPERTS)


def rule_way(shape: Shape) -> str:
    """Return the way that the rule by instructions takes."""
    has_wide_vectors = torch.backends.cpu.get_cpu_capability() == "AVX512"
    takes_onednn = (
        has_wide_vectors and shape.dtype == "float32" and shape.inner * shape.columns >= RULE_WEIGHTS
    )
    if shape.kind == "linear":
        return "separate" if takes_onednn else "torch"
    return "onednn" if takes_onednn else "torch"


def measure_steps(
    model: ModelConfig,
    vocab_size: int,
    case: Case,
    data: TrainingData,
    tables: Mapping[str, Products],
    seconds: float,
) -> Figures:
    """Return medians of step times with each table, and their ratios to those with the measured one."""
    trainers = {name: OurTrainer(model, vocab_size, case, data, batches=BATCHES) for name in tables}
    for name, products in tables.items():
        trainers[name].model.use_products(products)
    times: dict[str, list[float]] = {name: [] for name in trainers}
    end = math.inf
    number = 0
    while number < BATCHES + LEAST_STEPS or time.perf_counter() < end:
        if number == BATCHES:
            end = time.perf_counter() + seconds
        for name in list(trainers)[:: 1 if number % 2 else -1]:
            times[name].append(timed_step(trainers[name], number).seconds)
        number += 1
    return {
        name: {
            "milliseconds": round(1e3 * median(each[BATCHES:]), 2),
            "steps": len(each) - BATCHES,
            **ratios(each[BATCHES:], times["measured"][BATCHES:]),
        }
        for name, each in times.items()
    }


def report(name: str, figures: Figures) -> None:
    """Print the tables of one emulation."""
    print(f"\n## {name}\n")
    for size, measured in figures.items():
        print(f"### {size}: measured in {measured['seconds_to_measure']} s\n")
        print_table(
            [
                {"product": shape, **row["microseconds"], "measured": row["measured"], "rule": row["rule"]}
                for shape, row in measured["products"].items()
            ]
        )
    print_table(
        [
            {"model": size, "ways": ways, **row}
            for size, measured in figures.items()
            for ways, row in measured["steps"].items()
        ]
    )


if __name__ == "__main__":
    run(main, smoke={"sizes": ("d16",), "emulations": ("as it is",), "batch_tokens": 512, "seconds": 0.2})
