"""Write the numbers and figures of docs/studies/splitting.md from the run tables in docs/studies/splitting.

python -m studies.analysis.splitting
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, run
from studies.analysis.splitting import exponents, exposure, figures, fractions, rates, sharing
from studies.analysis.splitting.predictions import prediction_errors
from studies.analysis.splitting.tables import FOLDER, seed_spreads
from studies.page import Answer, write_page


def main(*, out: Path = FOLDER, refits: int = 200) -> None:
    """Print and write everything.

    Args:
        out: Folder for results.json and the figures.
        refits: Refits behind each interval.
    """
    compared = rates.tables()
    best, rows = compared.values()
    with_alone = best.groupby("task").filter(lambda part: bool(part["weight"].eq(1).any()))
    curves = pd.DataFrame(of_each(exponents.curve_exponents, compared))
    f = pd.DataFrame(fractions.fractions(rows, refits=refits))
    results: dict[str, Answer] = {
        "seeds": seed_spreads(rows),
        "equal length or exposure": of_each(exponents.slopes_at_equal, compared),
        "exponents": curves,
        "rivals": of_each(exponents.rivals, compared),
        "checks": of_each(exponents.checks, compared),
        "saturation": of_each(exponents.saturation, compared),
        "equal exposure": exposure.equal_exposure(rows),
        "equal exposure, best rates": exposure.equal_exposure(best),
        "32,000 steps": exposure.longer(),
        "rates": rates.rates(),
        "f": f,
        "f, best rates": fractions.fractions(with_alone, refits=refits),
        "f by size": fractions.shares_by_size(with_alone),
        "exponent of f over size": fractions.slopes_over_size(curves[curves["table"].eq("best rates")]),
        "eq. 12 or free": fractions.eq_12_or_free(rows, refits=refits),
        "predictions": prediction_errors(rows, refits=refits),
        "sharing": sharing.sharing(refits=refits),
        "exponents with shared features": sharing.predictors_of_exponents(),
        "direction": sharing.direction(refits=refits),
        "direction by size": sharing.direction_by_size(),
        "three against two": sharing.three_against_two(),
    }
    charts = {
        "exponents": figures.draw_exponents(curves),
        "curves": figures.draw_curves(best),
        "fractions": figures.draw_fractions(f),
    }
    write_page(out, results, charts)


def of_each(
    question: Callable[[pd.DataFrame], Iterable[Figures]], tables: dict[str, pd.DataFrame]
) -> Iterator[Figures]:
    """Yield what is asked of each table, with its name."""
    return ({"table": name} | row for name, rows in tables.items() for row in question(rows))


if __name__ == "__main__":
    run(main, smoke={"out": Path(gettempdir()) / "splitting", "refits": 2})
