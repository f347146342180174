"""Fit the law of encoder and decoder, weigh choices of training, and write docs/studies/encoder-decoder.

python -m studies.analysis.encoder_decoder
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import print_table, run
from studies.analysis.encoder_decoder.choices import (
    differences,
    draw_choices,
    reach_of_a_run,
    read_choices,
    seed_noise,
    summarise,
)
from studies.analysis.encoder_decoder.grid import (
    contest,
    depth_effects,
    draw_grid,
    fit_grid,
    law_rows,
    read_grid,
)
from studies.page import PAGES, write_page

OUT = PAGES / "encoder-decoder"
TESTSETS = ("test", "debian")
"""In domain and out of domain."""


def main(*, folder: Path = OUT, out: Path = OUT, refits: int = 400) -> None:
    """Print and write the laws, and the differences that choices make.

    Args:
        folder: Where the run tables are.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
    """
    choices, grid = read_choices(folder / "choices.csv"), read_grid(folder / "grid.csv")
    choices, grid = (rows[rows["testset"].isin(TESTSETS)] for rows in (choices, grid))
    fits = {testset: fit_grid(grid, testset, refits) for testset in TESTSETS}
    summary, noise = summarise(differences(choices)), seed_noise(choices)
    tables = {
        "laws": pd.DataFrame([row for name, fitted in fits.items() for row in law_rows(fitted, name)]),
        "contest": pd.DataFrame([row for testset in TESTSETS for row in contest(grid, testset)]),
        "depths": pd.DataFrame(depth_effects(grid)), "choices": summary, "seed noise": noise,
    }  # fmt: skip
    for name, frame in tables.items():
        print(f"\n### {name}\n")
        print_table(frame.round(4).to_dict("records"))
    in_domain = TESTSETS[0]
    half = reach_of_a_run(noise[noise["testset"].eq(in_domain)])
    charts = {
        "grid-test": draw_grid(grid[grid["testset"].eq(in_domain)], fits[in_domain], half),
        "choices": draw_choices(summary[summary["testset"].eq(in_domain)]),
    }
    write_page(out, {name: frame.to_dict("records") for name, frame in tables.items()}, charts)


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-encoder-decoder"})
