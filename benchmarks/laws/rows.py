"""Time and memory of reading and fitting run tables of up to a million rows.

Two kinds of table: repeated measurements of 64 models a task (which a sum of squares condenses exactly),
and as many different models as rows. Each case runs in a process of its own, whose peak memory is reported.

    python -m benchmarks.laws.rows --rows 1000 10000 100000 1000000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.laws.coverage import LAWS, SIZES, WEIGHTS
from mnmt_laws import Perturbation, fit, observe


def main() -> None:
    """Measure every case, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--refits", type=int, default=20)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case[0], int(arguments.case[1]), arguments.refits)))
        return
    results = [
        case(kind, rows, arguments.refits) for kind in ("repeated", "different") for rows in arguments.rows
    ]
    document = {
        "software": f"mnmt-laws {version('mnmt-laws')}",
        "refits": arguments.refits,
        "results": results,
    }
    print(
        pd.DataFrame(results).to_markdown(index=False)
        if _has_tabulate()
        else pd.DataFrame(results).to_string(index=False)
    )
    if arguments.out:
        arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def case(kind: str, rows: int, refits: int) -> dict[str, object]:
    """One measurement, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.laws.rows",
        "--case",
        kind,
        str(rows),
        "--refits",
        str(refits),
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, object] = json.loads(printed.splitlines()[-1])
    print(found, file=sys.stderr, flush=True)
    return found


def measure(kind: str, rows: int, refits: int) -> dict[str, object]:
    """Seconds to read and check the table, to fit and to refit; peak memory of the process."""
    table = make(kind, rows)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter()
    observations = observe(table)
    read = time.perf_counter()
    fitted = fit(observations, law="joint", uncertainty=Perturbation(refits=0))
    estimated = time.perf_counter()
    fit(observations, law="joint", uncertainty=Perturbation(refits=refits))
    ended = time.perf_counter()
    return {
        "table": kind,
        "rows": rows,
        "read_and_check_s": round(read - started, 2),
        "fit_s": round(estimated - read, 2),
        f"fit_and_{refits}_refits_s": round(ended - estimated, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_before_mb": round(base),
        "converged": fitted.converged,
    }


def make(kind: str, rows: int) -> pd.DataFrame:
    """A table of one task: values of its law times 1% noise."""
    rng = np.random.default_rng(0)
    law = LAWS["en-de"]
    size = (
        rng.choice(np.array(SIZES, float), rows) if kind == "repeated" else np.exp(rng.uniform(16, 21, rows))
    )
    weight = rng.choice(np.array(WEIGHTS), rows)
    share = weight + law.c1 * weight**law.c2 * (1 - weight) ** law.c3
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


def _has_tabulate() -> bool:
    try:
        import tabulate  # noqa: F401 - only to print
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main()
