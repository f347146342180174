"""Fit the law of encoder and decoder, weigh choices of training, and write docs/studies/encoder-decoder.

python -m studies.analysis.encoder_decoder
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

from benchmarks.measurement import run
from studies.analysis.encoder_decoder import choices, grid
from studies.analysis.intervals import half_of_a_run
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
    pairs, depths = choices.read_choices(folder / "choices.csv"), grid.read_grid(folder / "grid.csv")
    pairs, depths = (rows[rows["testset"].isin(TESTSETS)] for rows in (pairs, depths))
    inside = depths[depths["testset"].eq(TESTSETS[0])]
    fits = {testset: grid.fit_grid(depths, testset, refits) for testset in TESTSETS}
    summary, noise = choices.summarise(pairs), choices.seed_noise(pairs)
    tables = {
        "laws": [row for name, law in fits.items() for row in grid.law_rows(law, name)],
        "contest": grid.contest(inside), "depths": grid.depth_effects(depths),
        "choices": summary, "seed noise": noise,
    }  # fmt: skip
    plain = pairs[pairs["testset"].eq(TESTSETS[0]) & pairs["choice"].eq(choices.PLAIN)]
    half = half_of_a_run(plain.groupby(["task", "width"])["value"])
    charts = {
        "grid-test": grid.draw_grid(inside, fits[TESTSETS[0]], half),
        "choices": choices.draw_choices(summary[summary["testset"].eq(TESTSETS[0])]),
    }
    write_page(out, tables, charts)


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-encoder-decoder"})
