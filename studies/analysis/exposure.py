"""Ask of two studies what exponents follow, and what a task gains beside others at equal exposure.

Every run counts, held-out ones too: nothing is predicted. The numbers are in docs/studies/exposure; the pages
on splitting and on real text cite them.

    python -m studies.analysis.exposure
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws import exponents_by_exposure, fractions_by_size, observe, transfer_at_equal_exposure
from mnmt_laws.figures import draw_coefficients, draw_fractions_by_size
from mnmt_laws.figures.style import Chart
from mnmt_laws.tables.observations import Observations
from studies.page import PAGES, write_page
from studies.tables import print_rows, read_runs

OUT = PAGES / "exposure"
TABLES = {
    "unrelated": (("splitting/unrelated.csv", "splitting/unrelated-8000.csv"), ("test",)),
    "shared-25": (("splitting/shared-25.csv",), ("test",)),
    "shared-50": (("splitting/shared-50.csv",), ("test",)),
    "shared-100": (("splitting/shared-100.csv",), ("test",)),
    "en-de-zh": (("real-text/en-de-zh.csv",), ("test", "debian")),
    "en-de-fr": (("real-text/en-de-fr.csv",), ("test", "debian")),
    "de-zh-en": (("real-text/de-zh-en.csv",), ("test", "debian")),
}
"""Run tables of the pages, each of one file or more, and their test sets."""

DRAWN = {"en-de-zh": ("en-de",), "de-zh-en": ("de-en",)}
"""Tasks whose figures the pages show."""


def main(*, out: Path = OUT) -> None:
    """Print and write what the tables say.

    Args:
        out: Folder for results.json and the figures.
    """
    results: dict[str, list[Figures]] = {"exponents": [], "transfer": [], "shares": []}
    charts: dict[str, Chart] = {}
    for name, (paths, testsets) in TABLES.items():
        whole = read_runs(*(PAGES / path for path in paths)).assign(role="fit")
        for testset in testsets:
            rows = whole[whole["testset"].eq(testset)]
            observations = observe(rows, metric="loss", testset=testset)
            where = {"table": name, "testset": testset}
            results["exponents"] += [where | row for row in describe_exponents(observations)]
            results["transfer"] += [where | row for row in transfer(rows, testset)]
            results["shares"] += [where | row for row in shares(observations)]
            if testset == "test":
                charts |= draw(name, observations)
    for name, table in results.items():
        print_rows(name, table)
    write_page(out, results, charts)


def describe_exponents(observations: Observations) -> Iterator[Figures]:
    """Yield for each task, and for all, how well weight, length and exposure explain α."""
    answer = exponents_by_exposure(observations)
    for test in answer.tests:
        yield {
            "task": test.task, "L∞": answer.limits, "curves": test.curves,
            **{f"Spearman {name}": value for name, value in test.spearman.items()},
            **{f"R² {name}": value for name, value in test.r_squared.items()},
            "log p at equal exposure": list(test.at_equal_exposure),
        }  # fmt: skip


def transfer(rows: pd.DataFrame, testset: str) -> Iterator[Figures]:
    """Yield each task's mean difference over sizes, with those of single seeds and of each size."""
    means, by_size = differences(rows, testset)
    seeds = [differences(part, testset)[0]["difference"] for _, part in rows.groupby("seed")]
    for row, *each in zip(means.to_dict("records"), *seeds, strict=True):
        same = by_size["mixture"].eq(row["mixture"]) & by_size["length"].eq(row["length"])
        part = by_size[same & by_size["task"].eq(row["task"])].sort_values("size")["difference"]
        yield {**row, "by seed": each, "by size": part.tolist()}


def differences(rows: pd.DataFrame, testset: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the mean differences over several sizes, in order, and those of each size."""
    transferred = transfer_at_equal_exposure(rows, metric="loss", testset=testset)
    return transferred.means[transferred.means["sizes"] > 1], transferred.by_size


def shares(observations: Observations) -> Iterator[Figures]:
    """Yield f of each size after the longest training; None where only a bound is known."""
    fractions = fractions_by_size(observations)
    longest = fractions[fractions["length"] == fractions["length"].max()]
    for (task, weight), part in longest.groupby(["task", "weight"]):
        if len(part) > 1:
            columns = {name: part.sort_values("size")[name].tolist() for name in ("size", "value", "upper")}
            yield {"task": task, "weight": weight, **columns}


def draw(name: str, observations: Observations) -> dict[str, Chart]:
    """Return the figures of a table by file name: α over weight and exposure, and f over size."""
    charts: dict[str, Chart] = {}
    exponents = exponents_by_exposure(observations)
    for task in DRAWN.get(name, ()):
        charts[f"{name}-exponents"] = draw_coefficients(exponents, task=task, names=["alpha"])
        charts[f"{name}-shares"] = draw_fractions_by_size(fractions_by_size(observations), task=task)
    return charts


if __name__ == "__main__":
    run(main, smoke={})
