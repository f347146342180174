"""False alarms and detections of runs far off the law, on simulated tables.

Claim: a clean table names no run in more than 98 of 100 cases, and one that lies a fifth, or twelve times the
noise, above its law is named in most. No peer: the truth is known.

Tables have 8 to 60 rows and noise of .3 to 3%, drawn at random. In a second copy of each, one random row is
raised.

    python -m benchmarks.laws.far_off_runs --out benchmarks/results/laws/far_off_runs.json
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_laws import KnownLaw, ResidualBootstrap, fit, simulate
from mnmt_laws.laws import LawName

NO_REFITS = ResidualBootstrap(refits=0)
TASKS = {
    "a": KnownLaw.capacity(alpha=0.4, beta=900, l_inf=0.9, c1=0.18),
    "b": KnownLaw.capacity(alpha=0.35, beta=500, l_inf=1.1, c1=0.12),
}
LAWS: tuple[LawName, ...] = ("power", "joint", "capacity", "chinchilla")


def main(*, tables: int = 200, out: Out = None) -> None:
    """Print false alarms, and how many raised rows were named, by law.

    Args:
        tables: Simulated tables, in equal parts for each law.
        out: JSON file for the figures.
    """
    rng = np.random.default_rng(0)
    rows: list[Figures] = []
    for law in LAWS:
        alarms = hits = 0
        for _ in range(tables // len(LAWS)):
            noise, count = float(np.exp(rng.uniform(np.log(0.003), np.log(0.03)))), int(rng.integers(8, 61))
            table = table_of(law, count, noise, rng).reset_index(drop=True)
            place = int(rng.integers(len(table)))
            raised = table.copy()
            raised.loc[place, "value"] = table["value"][place] * (1 + max(0.2, 12 * noise))
            alarms += bool(named(table, law))
            hits += any(f"row {place + 2}:" in line for line in named(raised, law))
        rows.append({"law": law, "tables": tables // len(LAWS), "false alarms": alarms, "named": hits})
    print_table(rows)
    write_report(out, "runs far off the law", {"laws": rows}, provenance("mnmt-laws", "numpy"))


def table_of(law: LawName, count: int, noise: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of about `count` rows that obey a law."""
    side = max(3, int(np.sqrt(count)))
    if law in ("joint", "capacity"):
        weights = (0.1, 0.3, 0.5, 0.7, 0.9)[: side - 1]
        sizes = np.geomspace(2e7, 1e9, max(4, side)).tolist()
        return simulate(TASKS, sizes=sizes, weights=weights, noise=noise, seed=int(rng.integers(10**6)))
    if law == "power":
        table = pd.DataFrame({"size": np.geomspace(1e6, 1e9, count)})
        table["value"] = 1.5 + 20 * table["size"] ** -0.25
    else:
        grid = np.meshgrid(np.geomspace(1e7, 1e9, side), np.geomspace(1e9, 1e11, side))
        table = pd.DataFrame({"size": grid[0].ravel(), "tokens": grid[1].ravel()})
        table["value"] = 1.7 + 480 * table["size"] ** -0.35 + 2000 * table["tokens"] ** -0.37
    return table.assign(value=table["value"] * (1 + noise * rng.standard_normal(len(table))))


def named(table: pd.DataFrame, law: LawName) -> list[str]:
    """Return the lines about runs far off the law."""
    fitted = fit(table, law=law, uncertainty=NO_REFITS)
    return [line.message for line in fitted.diagnostics if line.kind == "far-off"]


if __name__ == "__main__":
    run(main, smoke={"tables": 4})
