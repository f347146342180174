"""Compare the nine models of Zhang et al. 2022 over their sizes, and write docs/studies/architectures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pandas as pd

from benchmarks.measurement import run
from mnmt_laws.figures.style import Chart
from studies.analysis.architectures import laws, models
from studies.analysis.architectures.figures import BLEU, GAP, LOSS, draw_exponents, draw_panels
from studies.analysis.architectures.gaps import effects, effects_when_small, gaps_to_encdec, trends
from studies.analysis.architectures.models import (
    ALL,
    FRENCH,
    GERMAN,
    LAYERS,
    SUPERVISED,
    ZERO_SHOT,
    of_task,
)
from studies.page import PAGES, Answer, write_page

OUT = PAGES / "architectures"
TABLES = ("runs", "lengths", "longer", "layers", "rates")
Tables = Mapping[str, pd.DataFrame]


def main(*, folder: Path = OUT, out: Path = OUT, refits: int = 200) -> None:
    """Print and write laws, gaps to the encoder-decoder and effects of single choices.

    Args:
        folder: Where the run tables are.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
    """
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in TABLES}
    losses = models.settings(tables)
    of_sizes = {name: some for name, some in losses.items() if not name.startswith((ZERO_SHOT, LAYERS))}
    fits = {name: laws.fit_models(some, refits=refits) for name, some in of_sizes.items()}
    ratios = laws.exponents(fits)
    answers: dict[str, Answer] = {
        "exponents": ratios,
        "irreducible loss": laws.limits(of_sizes, fits),
        "predictions": [laws.predictions(losses[ALL])],
        "rankings": models.rankings(of_sizes, tables["runs"]),
        **_differences(losses),
        "loss and scores": models.correlations(tables["runs"]),
        **{name: by_width(models.read_losses(tables["runs"], metric=name)) for name in ("bleu", "language")},
        "longer training": models.compare_lengths(tables["runs"], tables["longer"]),
        "effects after longer training": effects(of_task(models.read_losses(tables["longer"]), SUPERVISED)),
        "learning rates": models.compare_rates(tables["rates"]),
    }
    write_page(out, answers, {"exponents": draw_exponents(ratios), **_charts(losses, tables)})


def _differences(losses: Tables) -> dict[str, Answer]:
    """Return gaps to the encoder-decoder, effects of single choices, and the trends of both."""
    by_size = {name: gaps_to_encdec(some) for name, some in losses.items()}
    by_flops = {ALL: gaps_to_encdec(losses[ALL], predictor="flops")}
    by_layers = {LAYERS: gaps_to_encdec(losses[LAYERS], predictor="width")}
    equal = {"size": by_size, "FLOPs": by_flops, "layers": by_layers}
    changes = effects(losses[ALL])
    return {
        "gaps to EncDec": _joined({
            (name, what): trends(some, over="width" if name == LAYERS else "size")
            for what, tables in equal.items() for name, some in tables.items()
        }, "setting", "equal"),
        "gaps by width": by_size[ALL],
        "effects": trends(changes, by="effect"),
        "effects when small": effects_when_small(changes),
    }  # fmt: skip


def _joined(tables: Mapping[Any, pd.DataFrame], *names: str) -> pd.DataFrame:
    """Return tables as one, with their keys in columns."""
    return pd.concat(tables, names=names).reset_index(names).reset_index(drop=True)


def _charts(losses: Tables, tables: Tables) -> dict[str, Chart]:
    bleu = models.read_losses(tables["runs"], metric="bleu")
    places = {"size": "size", "flops": "FLOPs"}
    return {
        "gaps": draw_panels({
            f"at equal {what}": (gaps_to_encdec(losses[ALL], predictor=by), GAP, by)
            for by, what in places.items()
        }),
        "losses": draw_panels({
            f"{name}, over {what}": (losses[name], LOSS, by)
            for name in (ALL, "longest eighth") for by, what in places.items()
        }, laws=True),
        "layers": draw_panels({LAYERS: (losses[LAYERS], LOSS, "width")}),
        "transfer": draw_panels({
            **{task: (of_task(bleu, task), BLEU, "size") for task in (GERMAN, FRENCH)},
            "zero-shot loss": (losses[ZERO_SHOT], LOSS, "size"),
        }),
    }  # fmt: skip


def by_width(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task and model, with the mean over seeds at each width."""
    columns = rows.assign(width="d" + rows["width"].astype(str))
    order = list(dict.fromkeys(columns.sort_values("size")["width"]))
    return columns.pivot(index=["task", "model"], columns="width", values="value")[order].reset_index()


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-architectures"})
