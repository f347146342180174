"""Write the numbers and figures of docs/studies/splitting.md from the run tables in docs/studies/splitting.

python -m studies.analysis.splitting
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, run
from studies.analysis.splitting import exponents, exposure, figures, fractions, rates, sharing
from studies.analysis.splitting.predictions import prediction_errors
from studies.analysis.splitting.tables import FOLDER, seed_spreads
from studies.page import print_rows, write_page


def main(*, out: Path = FOLDER, refits: int = 200) -> None:
    """Print and write everything.

    Args:
        out: Folder for results.json and the figures.
        refits: Refits, and draws of seeds, behind each interval.
    """
    plateaus, compared = exposure.plateaus(), rates.tables()
    best, rows = compared.values()
    with_alone = best.groupby("task").filter(lambda part: bool(part["weight"].eq(1).any()))
    no_context = {row["task"]: row["reducible"] for row in plateaus if not row["words"]}
    results: Figures = {}
    for name, table in {
        "seeds": lambda: seed_spreads(rows),
        "one α or free": lambda: of_each(exponents.one_or_free, compared),
        "exponents": lambda: of_each(exponents.curve_exponents, compared),
        "rivals": lambda: of_each(exponents.rivals, compared),
        "checks": lambda: of_each(partial(exponents.checks, plateaus=no_context), compared),
        "saturation": lambda: of_each(exponents.saturation, compared),
        "equal exposure": lambda: exposure.equal_exposure(rows, draws=refits),
        "equal exposure, best rates": lambda: exposure.equal_exposure(best, draws=refits),
        "32,000 steps": lambda: exposure.longer(draws=refits),
        "plateaus": lambda: plateaus,
        "rates": rates.rates,
        "f": lambda: fractions.fractions(rows, refits=refits),
        "f, best rates": lambda: fractions.fractions(with_alone, refits=refits),
        "f by size": lambda: fractions.shares_by_size(with_alone, draws=refits),
        "exponent of f over size": lambda: fractions.slopes_over_size(with_alone, draws=refits),
        "eq. 12 or free": lambda: fractions.eq_12_or_free(rows, refits=refits),
        "predictions": lambda: prediction_errors(rows, refits=refits),
        "sharing": lambda: sharing.sharing(refits=refits),
        "exponents with shared features": sharing.predictors_of_exponents,
        "direction": lambda: sharing.direction(refits=refits),
        "direction by size": sharing.direction_by_size,
        "three against two": lambda: sharing.three_against_two(draws=refits),
    }.items():
        answer = table()
        results[name] = answer.to_dict("records") if isinstance(answer, pd.DataFrame) else list(answer)
        print_rows(name, results[name])
    charts = {
        "exponents": figures.draw_exponents(pd.DataFrame(results["exponents"])),
        "curves": figures.draw_curves(best),
        "fractions": figures.draw_fractions(pd.DataFrame(results["f"]), fractions.curves_of_eq_12(rows)),
    }
    write_page(out, results, charts)


def of_each(
    question: Callable[[pd.DataFrame], Iterable[Figures]], tables: dict[str, pd.DataFrame]
) -> Iterator[Figures]:
    """Yield what is asked of each table, with its name."""
    return ({"table": name} | row for name, rows in tables.items() for row in question(rows))


if __name__ == "__main__":
    run(main, smoke={"out": Path(gettempdir()) / "splitting", "refits": 2})
