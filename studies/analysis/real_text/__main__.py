"""Ask of three pairs of real tasks what laws say and what needs none, and write docs/studies/real-text.

python -m studies.analysis.real_text                       as the page has it
python -m studies.analysis.real_text --refits 20           rougher intervals, sooner
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import gettempdir

from benchmarks.measurement import Figures, run
from studies.analysis.real_text.exposure import (
    costs_of_sharing,
    describe_bends,
    describe_exponents,
    describe_shares,
    describe_transfer,
)
from studies.analysis.real_text.figures import FIGURES, draw_exposure
from studies.analysis.real_text.laws import (
    Fits,
    compare_laws,
    describe_laws,
    lack_of_fit,
    shares_by_law,
    spreads,
)
from studies.analysis.real_text.pairs import FOLDER, read_pairs
from studies.analysis.real_text.predictions import prediction_errors
from studies.analysis.real_text.quality import describe_quality, laws_of_chrf
from studies.analysis.real_text.rivals import costs_of_rate, describe_updates
from studies.analysis.real_text.shares import all_shares, differences
from studies.page import write_page

QUESTIONS: dict[str, Callable[[Fits], Iterator[Figures]]] = {
    "transfer": lambda fits: describe_transfer(fits.pair),
    "shares_by_size": lambda fits: describe_shares(fits.pair),
    "exponents": lambda fits: describe_exponents(fits.pair),
    "bends": lambda fits: describe_bends(fits.pair),
    "laws": describe_laws,
    "rival_laws": compare_laws,
    "lack_of_fit": lack_of_fit,
    "shares": all_shares,
    "shares_by_law": shares_by_law,
    "seeds": lambda fits: spreads(fits.pair),
    "held_out": lambda fits: prediction_errors(fits.pair, refits=fits.refits),
    "quality": describe_quality,
    "laws_of_chrf": laws_of_chrf,
}
"""What is asked of each pair; all answers are lists of rows in results.json."""

RIVALS: dict[str, Callable[[Path], Iterator[Figures]]] = {
    "related": costs_of_sharing,
    "rates": costs_of_rate,
    "updates": describe_updates,
}
"""What is asked of the folder of tables."""


def main(*, folder: Path = FOLDER, out: Path = FOLDER, refits: int = 60) -> None:
    """Print and write what the tables say.

    Args:
        folder: Where the tables are.
        out: Folder for results.json and the figures.
        refits: Refits behind each interval.
    """
    fits = {pair.name: Fits(pair, refits=refits) for pair in read_pairs(folder)}
    results = {name: [row for fit in fits.values() for row in ask(fit)] for name, ask in QUESTIONS.items()}
    results |= {"differences": list(differences(fits))}
    results |= {name: list(ask(folder)) for name, ask in RIVALS.items()}
    charts = {name: draw(fits) for name, draw in FIGURES.items()}
    write_page(out, results, {"exposure": draw_exposure(fits, folder), **charts})


if __name__ == "__main__":
    run(main, smoke={"refits": 2, "out": Path(gettempdir()) / "mnmt-real-text"})
