"""Judge the choices in docs/studies/decisions/advice.csv, and write the page's numbers and figure.

    python -m studies.analysis.decisions

`python -m studies.analysis.decisions.advice` makes the choices of tables that have none yet.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pandas as pd

from benchmarks.measurement import run
from studies.analysis.decisions.advice import FILE
from studies.analysis.decisions.figures import draw_gains
from studies.analysis.decisions.judgement import WON, costs_of, decisions_of, lead_of, summarise
from studies.analysis.decisions.tables import known_tables, new_tables
from studies.page import PAGES, write_page


def main(*, advice: Path = FILE, out: Path = PAGES / "decisions") -> None:
    """Judge.

    Args:
        advice: The choices.
        out: Folder for results.json and the figure.
    """
    choices = pd.read_csv(advice)
    trained = [table for table in new_tables() if table.targets and table.targets.is_file()]
    tables = [*known_tables(), *trained]
    streams = np.random.default_rng(0).spawn(len(tables))  # so that no table's draws depend on another's
    decisions = pd.DataFrame(
        decision
        for table, rng in zip(tables, streams, strict=True)
        for decision in decisions_of(table, choices[choices["table"].eq(table.name)], rng)
    )
    new = decisions["table"].isin([table.name for table in trained])
    beforehand, decisions = decisions[new], decisions[~new]
    target = decisions["aim"].eq("targets")
    nats = decisions[~target & decisions["aim"].ne("relative")]  # whose costs are shares
    won = nats[nats[WON]]
    summaries = {
        "by table": summarise(won, ["table", "small"]),
        "by aim": summarise(decisions[decisions[WON] & ~target], ["aim", "small"]),
        "together": summarise(won, ["small"]),
        "leads": lead_of(won),
        "leads, importance": lead_of(won[won["aim"].eq("mean")]),
        "first within 3% of alone": summarise(decisions[target], ["table", "small"]),
        "not to be won": summarise(nats[~nats[WON]], ["small"]),
        "fixed beforehand": summarise(beforehand, ["want", WON, "small"]),
    }
    costs = pd.DataFrame(cost for table in tables for cost in costs_of(table))
    stakes = decisions[["table", "want", "best", "stake", "scatter"]].drop_duplicates()
    results = {"small models": costs, **summaries, "stakes": stakes}
    write_page(out, results, {"gains": draw_gains(summaries["by table"], summaries["together"], costs)})


if __name__ == "__main__":
    run(main, smoke={"out": Path(gettempdir()) / "mnmt-decisions"})
