"""Time and memory of reading and fitting run tables of up to a million rows.

Claim: a million different rows are fitted, with 200 refits, in less than 2 GB. No peer. No page cites it yet.

There are two kinds of table: repeated measurements of 64 models a task, which a sum of squares condenses
exactly, and as many different models as rows. Each case runs in a process of its own, whose peak memory is
reported.

    python -m benchmarks.laws.rows --out benchmarks/results/laws/rows.json
"""

from __future__ import annotations

import json
import time
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.laws.coverage import LAWS, SIZES, WEIGHTS
from benchmarks.measurement import (
    Counts,
    Figures,
    Out,
    in_new_process,
    peak_memory_mb,
    print_table,
    provenance,
    run,
    write_report,
)
from mnmt_laws import Perturbation, fit, observe
from mnmt_laws.laws import LawName

Kind = Literal["repeated", "different"]
KINDS: tuple[Kind, ...] = ("repeated", "different")


def main(
    *,
    rows: Counts = (1_000, 10_000, 100_000, 1_000_000),
    refits: int = 200,
    law: LawName = "capacity",
    kind: Kind | None = None,
    out: Out = None,
) -> None:
    """Print a table of all cases.

    Args:
        rows: Numbers of rows.
        refits: Refits of each fit.
        law: The law to fit.
        kind: Measure this kind of table alone, in this process; the benchmark starts itself with it.
        out: JSON file for the figures.
    """
    if kind is not None:
        print(json.dumps(measure(kind, rows[0], refits, law)))
        return
    module = "benchmarks.laws.rows"
    results = [
        in_new_process(module, "--kind", each, "--rows", count, "--refits", refits, "--law", law)
        for each in KINDS
        for count in rows
    ]
    print_table(results)
    figures = {"law": law, "refits": refits, "results": results}
    write_report(out, "reading and fitting run tables", figures, provenance("mnmt-laws", "numpy", "pandas"))


def measure(kind: Kind, rows: int, refits: int, law: LawName) -> Figures:
    """Return the seconds to read and check the table, to fit and to refit, and the peak memory."""
    table = make_table(kind, rows)
    before = peak_memory_mb()
    start = time.perf_counter()
    observations = observe(table)
    after_read = time.perf_counter()
    fitted = fit(observations, law=law, uncertainty=Perturbation(refits=0))
    after_fit = time.perf_counter()
    fit(observations, law=law, uncertainty=Perturbation(refits=refits))
    end = time.perf_counter()
    return {
        "table": kind,
        "rows": rows,
        "read_and_check_s": round(after_read - start, 2),
        "fit_s": round(after_fit - after_read, 2),
        f"fit_and_{refits}_refits_s": round(end - after_fit, 2),
        "peak_mb": peak_memory_mb(),
        "peak_before_mb": before,
        "converged": fitted.converged,
    }


def make_table(kind: Kind, rows: int) -> pd.DataFrame:
    """Return a table of one task: values of its law times 1% noise."""
    rng = np.random.default_rng(0)
    law = LAWS["en-de"]
    size = (
        rng.choice(np.array(SIZES, float), rows) if kind == "repeated" else np.exp(rng.uniform(16, 21, rows))
    )
    weight = rng.choice(np.array(WEIGHTS), rows)
    fractions = {each: law.fraction(each) for each in WEIGHTS}
    share = np.array([fractions[each] for each in weight.tolist()])
    value = (law.beta * (share * size) ** -law.alpha + law.l_inf) * (1 + 0.01 * rng.standard_normal(rows))
    return pd.DataFrame(
        {
            "size": size,
            "task": "en-de",
            "weight": weight,
            "metric": "loss",
            "value": value,
            "seed": np.arange(rows),
        }
    )


if __name__ == "__main__":
    run(main, smoke={"rows": (1000,), "refits": 2})
