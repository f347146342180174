"""Fit the laws to three pairs of real tasks, compare and predict, and write docs/studies/real-text.

python -m studies.analysis.real_text                       every table that is there
python -m studies.analysis.real_text --refits 20           rougher intervals, sooner
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

from benchmarks.measurement import Figures, run
from studies.analysis.real_text.figures import draw_all
from studies.analysis.real_text.laws import (
    Fits,
    describe_laws,
    describe_quality,
    laws_of_length,
    scored,
    shares_by_law,
    what_varies,
)
from studies.analysis.real_text.pairs import FOLDER, GRID, UNSEEN, costs_of_sharing, read_pairs
from studies.analysis.real_text.predictions import advise, prediction_errors
from studies.analysis.real_text.shares import (
    all_shares,
    differences,
    differences_by_seed,
    fits_by_seed,
    shares_by_seed,
    spreads,
)
from studies.page import write_page
from studies.tables import print_rows


def main(*, folder: Path = FOLDER, out: Path = FOLDER, refits: int = 60, tables: int = 0) -> None:
    """Print and write what the tables say.

    Args:
        folder: Where the tables are.
        out: Folder for results.json and the figures.
        refits: Refits behind each interval.
        tables: Tables simulated to test which parameter the mixture acts through; 0 leaves that out.
    """
    fits = {pair.name: Fits(pair, refits=refits) for pair in read_pairs(folder)}
    results = {**results_of(fits, refits=refits, tables=tables), "related": list(costs_of_sharing(folder))}
    for name, rows in results.items():
        print_rows(name, rows, without=("findings", "verdict", "grid"))
    write_page(out, results, dict(draw_all(fits)))


def results_of(fits: dict[str, Fits], *, refits: int, tables: int) -> Figures:
    """Return a list of rows for each question."""
    each = list(fits.values())
    alone = {name: fits_by_seed(fit) for name, fit in fits.items()}
    steps = min((fit.pair.steps[-1] for fit in each), default=0)
    return {
        "laws": [row for fit in each for row in describe_laws(fit)],
        "acts_through": [row for fit in each for row in what_varies(fit.grid, tables=tables)],
        "length": [row for fit in each for row in laws_of_length(fit)],
        "shares_by_law": [row for fit in each for row in shares_by_law(fit)],
        "shares": [row for fit in each for row in all_shares(fit)],
        "differences": list(differences(fits, step=steps)),
        "seeds": [row for fit in each for row in spreads(fit.pair)],
        "shares_by_seed": [row for by_seed in alone.values() for row in shares_by_seed(by_seed)],
        "differences_by_seed": list(differences_by_seed(alone, step=steps)),
        "held_out": [
            row for fit in each for row in prediction_errors(fit.pair.at(*GRID, UNSEEN), refits=refits)
        ],
        "advice": [row for fit in each for row in advise(fit.pair, refits=refits)],
        "quality": [row for fit in each if scored(fit.pair) for row in describe_quality(fit)],
    }


if __name__ == "__main__":
    run(main, smoke={"refits": 2, "tables": 0, "out": Path(gettempdir()) / "mnmt-real-text"})
