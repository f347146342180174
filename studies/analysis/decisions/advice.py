"""Write what every method chooses, from the small models alone, to docs/studies/decisions/advice.csv.

    python -m studies.analysis.decisions.advice

A table whose choices are there is left as it is, so that those fixed beforehand stay so; without its rows it
is chosen for anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Names, print_table, run
from mnmt_laws import Forecast, Observations, TableError, forecast, recommend
from mnmt_laws.laws import LawName
from studies.analysis.decisions.tables import Table, known_tables, new_tables
from studies.analysis.decisions.wants import LEAST, Wish
from studies.page import PAGES

FILE = PAGES / "decisions/advice.csv"
TOOL, LINES, GRID = "the tool", "lines", "grid of the smallest"
FORECASTS: dict[str, LawName | str] = {TOOL: "auto", LINES: "lines-length"}


def main(*, tables: Names = (), out: Path = FILE) -> None:
    """Choose, and write what was chosen.

    Args:
        tables: Names of the tables; by default all that lack choices.
        out: The CSV file.
    """
    rows = pd.read_csv(out) if out.is_file() else pd.DataFrame({"table": []})
    for table in (*known_tables(), *new_tables()):
        if table.name in (tables or (table.name,)) and table.name not in set(rows["table"]):
            advice = pd.DataFrame(choices_of(table))
            rows = pd.concat([rows, advice]) if len(rows) else advice
            rows.round(5).to_csv(out, index=False)
    print_table(rows.to_dict("records"))


def choices_of(table: Table) -> Iterator[Figures]:
    """Yield the first task's weight, and its stated regret, for all small models and methods."""
    for kind in table.choices:
        for seed in table.seeds:
            small = table.small(kind, seed)
            predicted = {name: _forecast(table, small, law) for name, law in FORECASTS.items()}
            for wish in table.wishes:
                key = {"table": table.name, "small": kind, "seed": seed, "want": wish.name}
                yield key | {"method": GRID, "weight": wish.best(smallest(small.frame))}
                for method, known in predicted.items():
                    yield key | {"method": method} | _advice(table, wish, known)


def smallest(small: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the smallest models, at the longest training that has the most weights."""
    trained = small[small["size"].eq(small["size"].min()) & small["weight"].gt(0)]
    counts = trained.groupby("step").size()
    return trained[trained["step"].eq(counts.index[counts.eq(counts.max())].max())]


def _forecast(table: Table, small: Observations, law: str) -> Forecast | None:
    """Return the forecast of the target; None where the law cannot be fitted."""
    try:
        known = forecast(small, law=law, size=table.size, tokens=table.tokens)  # type: ignore[arg-type]
    except TableError:
        return None
    return known if known.tasks == table.tasks else None


def _advice(table: Table, wish: Wish, known: Forecast | None) -> Figures:
    """Return the weight and its stated regret; equal weights where nothing could be fitted."""
    if known is None:
        return {"weight": 0.5, "stated": None}
    alone = np.diag(known.predict(np.eye(2))[0])
    want = wish.want(table.tasks, alone)
    choice = recommend(
        known, aim=want.aim, preference=want.importance, targets=want.targets or None, least_weight=LEAST
    )
    return {"weight": choice.weights[table.tasks[0]], "stated": choice.regret}


if __name__ == "__main__":
    run(main, smoke={"tables": ("made languages",), "out": Path(gettempdir()) / "mnmt-advice.csv"})
