"""Compare the nine models of Zhang et al. 2022 over their sizes, and write docs/studies/architectures."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import run
from mnmt_laws.figures.style import Chart
from studies.analysis.architectures import figures, gaps, laws, models
from studies.analysis.architectures.models import SUPERVISED, ZERO_SHOT
from studies.page import PAGES, Answer, write_page

OUT = PAGES / "architectures"
LONGEST = "longest eighth"


def main(*, folder: Path = OUT, out: Path = OUT, refits: int = 200) -> None:
    """Print and write laws, gaps to the encoder-decoder and effects of single choices.

    Args:
        folder: Where the run tables are.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
    """
    rows = pd.read_csv(folder / "runs.csv")
    values = {name: models.read_losses(rows, metric=name) for name in ("loss", "bleu", "language")}
    longer = pd.read_csv(folder / "longer.csv")
    by_setting = models.settings(rows, pd.read_csv(folder / "lengths.csv"))
    fits = {name: laws.fit_models(some, refits=refits) for name, some in by_setting.items()}
    ratios, losses = laws.exponents(fits), of_kinds(values["loss"])
    by_size, effects = gaps.gaps_to_encdec(losses), gaps.effects(losses)
    tables: dict[str, Answer] = {
        "exponents": ratios,
        "irreducible loss": laws.limits(by_setting, fits),
        "predictions": [laws.predictions(by_setting["all"])],
        "rankings": models.rankings(by_setting, rows),
        "loss and scores": models.correlations(rows),
        "gaps to EncDec of equal size": gaps.trends(by_size),
        "gaps to EncDec of equal FLOPs": gaps.trends(gaps.gaps_to_encdec(losses, predictor="flops")),
        "gaps by width": by_size[by_size["model"].isin(gaps.MEANS)],
        "effects": gaps.trends(effects, by="effect"),
        "effects when small": gaps.effects_when_small(effects),
        "effects after longer training": gaps.effects(of_kinds(models.by_seed(longer))),
        **{name: by_width(some) for name, some in values.items()},
        "gaps by sentences": pd.concat(
            gaps.trends(gaps.gaps_to_encdec(some)).assign(setting=name) for name, some in by_setting.items()
        ),
        "longer training": models.compare_lengths(rows, longer),
        "learning rates": models.compare_rates(folder / "rates.csv"),
    }

    def of(task: str, metric: str = "loss") -> pd.DataFrame:
        return values[metric][values[metric]["task"].eq(task)]

    charts: dict[str, Chart] = {
        "gaps": figures.draw_gaps(of(SUPERVISED)),
        "exponents": figures.draw_exponents(ratios),
        "losses": figures.draw_laws({
            **{task: (of(task), "size") for task in ("English to German", "English to French")},
            LONGEST: (by_setting[LONGEST], "size"),
            "all, over FLOPs": (of(SUPERVISED), "flops"),
        }),
        "transfer": figures.draw_scores({
            "English and German": (of(models.GERMAN, "bleu"), "BLEU"),
            "English and French": (of(models.FRENCH, "bleu"), "BLEU"),
            "zero-shot loss": (of(ZERO_SHOT), "nats per token"),
            "zero-shot, in the right language": (of(ZERO_SHOT, "language"), "%"),
        }),
    }  # fmt: skip
    write_page(out, tables, charts)


def of_kinds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all trained tasks, and of all others."""
    return rows[rows["task"].isin((SUPERVISED, ZERO_SHOT))]


def by_width(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task and model, with the mean over seeds at each width."""
    rows = of_kinds(rows)
    columns = rows.assign(width="d" + rows["width"].astype(str))
    order = list(dict.fromkeys(columns.sort_values("size")["width"]))
    return columns.pivot(index=["task", "model"], columns="width", values="value")[order].reset_index()


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-architectures"})
