"""Fit the law of encoder and decoder, weigh choices of training, and write docs/studies/encoder-decoder.

python -m studies.analysis.encoder_decoder
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, print_table, run
from mnmt_laws.figures.style import Chart
from studies.analysis.encoder_decoder.choices import (
    differences,
    draw_choices,
    read_choices,
    seed_noise,
    summarise,
)
from studies.analysis.encoder_decoder.grid import compare_laws, draw_grid, law_rows, read_grid, swaps
from studies.page import PAGES, write_page

OUT = PAGES / "encoder-decoder"
TESTSETS = ("test", "debian")
"""In domain and out of domain."""


def main(
    *,
    grid: Path = OUT / "grid.csv",
    choices: Path = OUT / "choices.csv",
    out: Path = OUT,
    refits: int = 400,
) -> None:
    """Print and write the laws, and the differences that choices make, of the tables that are there.

    Args:
        grid: Run table of encoders and decoders of different depths.
        choices: Run table of choices of training.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
    """
    tables: dict[str, pd.DataFrame] = {}
    charts: dict[str, Chart] = {}
    if grid.exists():
        tables, charts = grid_results(grid, refits)
    if choices.exists():
        more, others = choice_results(choices)
        tables, charts = tables | more, charts | others
    for name, frame in tables.items():
        print(f"\n### {name}\n")
        print_table(frame.round(4).to_dict("records"))
    if tables:
        write_page(out, {name: frame.to_dict("records") for name, frame in tables.items()}, charts)


def grid_results(table: Path, refits: int) -> tuple[dict[str, pd.DataFrame], dict[str, Chart]]:
    """Return the tables and the figure of the depths."""
    rows = read_grid(table)
    rows = rows[rows["testset"].isin(TESTSETS)]
    laws: list[Figures] = []
    contest: list[Figures] = []
    charts = {}
    for testset in TESTSETS:
        fitted, lines = compare_laws(rows, testset, refits)
        laws += law_rows(fitted, testset)
        contest += lines
        if testset == TESTSETS[0]:
            charts["grid-test"] = draw_grid(rows[rows["testset"].eq(testset)], fitted)
    tables = {"laws": pd.DataFrame(laws), "contest": pd.DataFrame(contest), "swaps": swaps(rows)}
    return tables, charts


def choice_results(table: Path) -> tuple[dict[str, pd.DataFrame], dict[str, Chart]]:
    """Return the tables and the figure of the choices of training."""
    rows = read_choices(table)
    rows = rows[rows["testset"].isin(TESTSETS)]
    summary = summarise(differences(rows))
    chart = draw_choices(summary[summary["testset"].eq(TESTSETS[0])])
    return {"choices": summary, "seed noise": seed_noise(rows)}, {"choices": chart}


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-encoder-decoder"})
