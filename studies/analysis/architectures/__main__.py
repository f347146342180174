"""Compare the nine models of Zhang et al. 2022 over their sizes, and write docs/studies/architectures.

    python -m studies.analysis.architectures

`--runs results/architectures/runs` first writes the table of losses by length, lengths.csv.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import print_table, run
from mnmt_laws.figures.style import Chart
from studies.analysis.architectures.gaps import draw_gaps, draw_scores, effects, gaps_to_encdec, trends
from studies.analysis.architectures.laws import (
    draw_laws,
    draw_parameters,
    fit_architectures,
    parameters_of,
    predictions,
)
from studies.analysis.architectures.models import (
    FRENCH,
    GERMAN,
    SUPERVISED,
    ZERO_SHOT,
    compare_lengths,
    compare_rates,
    rankings,
    read_losses,
    settings,
    write_lengths,
)
from studies.page import PAGES, write_page

OUT = PAGES / "architectures"
KINDS = (SUPERVISED, ZERO_SHOT)
METRICS = ("bleu", "language")
LONGEST = "longest eighth"


def main(*, folder: Path = OUT, out: Path = OUT, refits: int = 200, runs: Path | None = None) -> None:
    """Print and write laws, gaps to the encoder-decoder and effects of single choices.

    Args:
        folder: Where the run tables are.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
        runs: Folder of the run records, of which `lengths.csv` is made.
    """
    rows = pd.read_csv(folder / "runs.csv")
    if runs is not None:
        write_lengths(runs, rows, folder / "lengths.csv")
    losses, scores = read_losses(rows), {name: read_losses(rows, metric=name) for name in METRICS}
    by_setting = settings(rows, pd.read_csv(folder / "lengths.csv"))
    fits = {name: fit_architectures(some, refits=refits) for name, some in by_setting.items()}
    parameters, groups = parameters_of(fits), losses[losses["task"].isin(KINDS)]
    tables = {
        "laws": parameters, "predictions": pd.DataFrame(predictions(by_setting["all"])),
        "rankings": pd.DataFrame(rankings(by_setting, rows)),
        "gaps to EncDec of equal size": trends(gaps_to_encdec(groups)),
        "gaps to EncDec of equal FLOPs": trends(gaps_to_encdec(groups, predictor="flops")),
        "effects": trends(effects(groups), by="effect"),
        "losses": by_width(losses), **{name: by_width(some) for name, some in scores.items()},
        "gaps by length": pd.concat(
            trends(gaps_to_encdec(by_setting[name])).assign(setting=name) for name in [*by_setting][1:]
        ),
        "longer training": compare_lengths(rows, pd.read_csv(folder / "longer.csv")),
        "learning rates": compare_rates(folder / "rates.csv"),
    }  # fmt: skip
    panels = {"all sentences": "all", LONGEST: LONGEST}
    charts: dict[str, Chart] = {
        "gaps": draw_gaps(losses), "exponents": draw_parameters(parameters),
        "losses": draw_laws({title: by_setting[name] for title, name in panels.items()},
                            {title: fits[name] for title, name in panels.items()}),
        "transfer": draw_scores(scores["bleu"], {
            GERMAN: "English to German and back", FRENCH: "English to French and back"}),
    }  # fmt: skip
    for name, frame in tables.items():
        print(f"\n### {name}\n")
        print_table(frame.round(4).to_dict("records"))
    write_page(out, {name: frame.to_dict("records") for name, frame in tables.items()}, charts)


def by_width(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task and model, with the mean over seeds at each width."""
    rows = rows[rows["task"].isin(KINDS)]
    columns = rows.assign(width="d" + rows["width"].astype(str))
    order = list(dict.fromkeys(columns.sort_values("size")["width"]))
    return columns.pivot(index=["task", "model"], columns="width", values="value")[order].reset_index()


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-architectures"})
