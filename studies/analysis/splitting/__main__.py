"""Write the numbers and figures of docs/studies/splitting.md from the run tables in docs/studies/splitting.

python -m studies.analysis.splitting
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, print_table, run
from mnmt_laws.figures.style import Chart
from studies.analysis.splitting.constancy import claims, contest
from studies.analysis.splitting.exposure import equal_exposure, gaps, long_rates, longer, plateaus, tuned
from studies.analysis.splitting.figures import (
    draw_exposure,
    draw_fractions,
    draw_sharing,
    draw_sizes,
    draw_three,
)
from studies.analysis.splitting.fractions import (
    LENGTH_LAWS,
    USUAL,
    fractions,
    fractions_by_seed,
    length_laws,
    sharing,
    spreads,
)
from studies.analysis.splitting.tables import FOLDER, SHARED, few, read
from studies.analysis.splitting.three import (
    LAWS,
    direction,
    direction_by_size,
    errors,
    predictions,
    two_against_three,
)
from studies.page import write_page


def main(*, out: Path = FOLDER, refits: int = 200, fast: bool = False) -> None:
    """Print and write everything.

    Args:
        out: Folder for results.json and the figures.
        refits: Refits, and draws of seeds, behind each interval.
        fast: Whether to compare laws on few rows, and to fit one of the laws of length.
    """
    rows = read("unrelated")
    some, laws = (few(rows), [USUAL]) if fast else (rows, LENGTH_LAWS)
    contested = some[some["step"] >= (8000 if fast else 0)]
    three = {law: predictions(law, refits=refits) for law in LAWS}
    results: Figures = {
        "seeds": list(spreads(rows)),
        "f by seed": list(fractions_by_seed(rows, refits=refits)),
        "what changes with the weight": list(contest(contested)),
        "claims": list(claims(contested, refits=refits)),
        "f": fractions(refits=refits).to_dict("records"),
        "laws of length": list(length_laws(some, laws=laws, refits=refits)),
        "equal exposure": equal_exposure(rows, draws=refits).to_dict("records"),
        "32,000 steps": longer(rows).to_dict("records"),
        "plateaus": plateaus(),
        "sharing": sharing(refits=refits),
        "direction": direction(refits=refits),
        "direction by size": direction_by_size().to_dict("records"),
        "rates": list(tuned()),
        "shared over alone by rate": list(gaps()),
        "long runs by rate": long_rates().to_dict("records"),
        "three tasks": {law: errors(part).to_dict("records") for law, part in three.items()},
        "three against two": list(two_against_three(draws=refits)),
    }
    for name, part in results.items():
        for label, table in part.items() if isinstance(part, dict) else [("", part)]:
            print(f"\n### {name} {label}\n")
            print_table([{key: as_text(value) for key, value in row.items()} for row in table])
    write_page(out, results, charts(rows, results, three["capacity"]))


def charts(rows: pd.DataFrame, results: Figures, three: pd.DataFrame) -> dict[str, Chart]:
    """Return the figures by name."""
    f = pd.DataFrame(results["f"])
    whole = f[f["table"].eq("unrelated") & f["sizes"].eq("all") & f["testset"].eq("test")]
    by_length = whole.assign(line=[f"{step:,} steps" for step in whole["step"]])
    longest = pd.DataFrame(results["32,000 steps"])
    first = rows[rows["task"] == "xx-aa"]
    smallest = first[first["size"] == first["size"].min()]
    plateau = next(row["reducible"] for row in results["plateaus"] if row["task"] == "xx-aa")
    return {
        "sizes": draw_sizes(first[first["step"] > first["step"].min()], plateau),
        "fractions": draw_fractions(by_length, law_lines(results["laws of length"])),
        "exposure": draw_exposure(smallest, longest[longest["task"] == "xx-aa"], plateau),
        "sharing": draw_sharing(shared_lines(f)),
        "three": draw_three(three),
    }


def law_lines(laws: list[Figures]) -> pd.DataFrame:
    """Return f̂ of the usual law of length, fitted to the saturated rows, as rows to draw."""
    fitted = next(
        row for row in laws if row["law"] == USUAL and row["rows"] == "saturated" and row["L∞"] == "known"
    )
    columns = ["weight", "value", "lower", "upper"]
    tasks = [
        pd.DataFrame([*about["f"], [1.0, 1.0, 1.0, 1.0]], columns=columns).assign(task=task)
        for task, about in fitted["tasks"].items()
    ]
    return pd.concat(tasks).assign(line="law that knows the length")


def shared_lines(f: pd.DataFrame) -> pd.DataFrame:
    """Return f of the first task with each share of features in common, at the sizes that all tables have."""
    is_common = f["sizes"].eq("common") | (f["table"].ne("unrelated") & f["table"].isin(SHARED))
    some = f[is_common & f["task"].eq("xx-aa") & f["step"].le(2000)]
    return some.assign(line=[f"{SHARED[table]:.0%} in common" for table in some["table"]])


def as_text(value: object) -> str:
    """Return a number with three digits, and all else as it is."""
    if isinstance(value, list | tuple):
        return f"({', '.join(map(as_text, value))})"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    run(main, smoke={"out": Path(gettempdir()) / "splitting", "refits": 2, "fast": True})
