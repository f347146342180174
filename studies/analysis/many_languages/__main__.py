"""Compare models of twelve languages with models of one, and write docs/studies/many-languages.

    python -m studies.analysis.many_languages

`--uses experts.json` first writes the tables of the experts, from what `mnmt-eval analyse --json` printed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws.figures.style import Chart
from studies.analysis.many_languages.figures import draw_cost, draw_experts, draw_gains, draw_longer
from studies.analysis.many_languages.models import (
    EXPERTS,
    FOLDER,
    LONGER,
    SMALL_BATCHES,
    TABLE,
    read_runs,
    values_by_language,
)
from studies.analysis.many_languages.questions import (
    at_equal_cost,
    contrasts,
    gains_by_text,
    longer_training,
    quality_and_cost,
    write_experts,
)
from studies.page import write_page
from studies.tables import print_rows


def main(*, folder: Path = FOLDER, out: Path = FOLDER, uses: Path | None = None) -> None:
    """Print and write what the tables say.

    Args:
        folder: Where the tables are.
        out: Folder for results.json and the figures.
        uses: Output of `mnmt-eval analyse --json`, of which experts.csv is made.
    """
    if not (folder / TABLE).exists():
        print(f"{folder / TABLE} is not there.")
        return
    rows = read_runs(folder / TABLE)
    if uses is not None:
        write_experts(uses, folder / EXPERTS, dict(zip(rows["run"], rows["name"], strict=True)))
    metrics = [name for name in ("loss", "chrf", "bleu") if rows["metric"].eq(name).any()]
    results: Figures = {
        "by_language": [{"task": task, **values} for task, values in
                        values_by_language(rows).to_dict("index").items()],
        "quality_and_cost": [row for name in metrics for row in quality_and_cost(rows, name)],
        "gains_by_text": [row for name in metrics for row in gains_by_text(rows, name)],
        "contrasts": [row for name in metrics for row in contrasts(rows, name)],
    }  # fmt: skip
    charts: dict[str, Chart] = {"gains": draw_gains(rows), "cost": draw_cost(rows)}
    if (folder / LONGER).is_file():
        longer, batches = read_runs(folder / LONGER), read_runs(folder / SMALL_BATCHES)
        results["longer_training"] = list(longer_training(rows, longer, batches))
        results["at_equal_cost"] = list(at_equal_cost(longer, batches))
        charts["longer"] = draw_longer(results["longer_training"])
    if (folder / EXPERTS).is_file():
        shares = pd.read_csv(folder / EXPERTS)
        results["specialisation"] = shares.drop_duplicates(["model", "layer"])[
            ["model", "layer", "told", "told_lower", "told_upper", "least_load", "most_load"]
        ].to_dict("records")
        charts["experts"] = draw_experts(shares, "moe16, T = 1")
    for name, table in results.items():
        print_rows(name, table)
    write_page(out, results, charts)


if __name__ == "__main__":
    run(main, smoke={"out": Path(gettempdir()) / "mnmt-many-languages"})
