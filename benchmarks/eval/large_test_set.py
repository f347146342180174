r"""Time and memory of a comparison of large test sets.

Claim: the memory of `mnmt-eval compare` hardly grows with the test set, beyond its text and its statistics.

Two systems replace and drop words of random lines. Printed are the processor's seconds, the largest memory of
the process, and a checksum of its JSON, which must not depend on how the work is cut.

    python -m benchmarks.eval.large_test_set --out benchmarks/results/eval/large_test_set.json
"""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.eval.calibration import perturb, random_lines
from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report


def main(
    *,
    sentences: Counts = (10_000, 100_000),
    metrics: Names = ("bleu", "chrf"),
    seed: int = 1,
    out: Out = None,
) -> None:
    """Print a table.

    Args:
        sentences: Sentences of each test set.
        metrics: Metrics that are compared.
        seed: Seed of the lines.
        out: JSON file for the figures.
    """
    rows = []
    for count in sentences:
        with TemporaryDirectory() as folder:
            write_texts(Path(folder), count, np.random.default_rng(seed))
            rows.append({"sentences": count, **measure(Path(folder), metrics)})
        print_table(rows[-1:])
    write_report(
        out,
        "comparison of large test sets",
        {"metrics": metrics, "rows": rows},
        provenance("mnmt-eval", "sacrebleu", "numpy"),
    )


def write_texts(folder: Path, count: int, rng: np.random.Generator) -> None:
    """Write references and the outputs of two systems."""
    references = random_lines(count, rng)
    texts = {"ref": references, "one": perturb(references, 0.20, rng), "two": perturb(references, 0.22, rng)}
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def measure(folder: Path, metrics: Names) -> Figures:
    """Compare the systems in a process of its own."""
    command = [sys.executable, "-m", "mnmt_eval", "compare", "one", "two", "--reference", "ref"]
    options = ["--task", "de-en", "--metric", ",".join(metrics), "--json"]
    with subprocess.Popen([*command, *options], cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return {
        "CPU seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak memory, MB": round(usage.ru_maxrss / 1024),
        "SHA-256 of the output": sha256(printed).hexdigest()[:12],
    }


if __name__ == "__main__":
    run(main, smoke={"sentences": (50,), "metrics": ("bleu",)})
