"""Compare models of Zhang et al. 2022 over their sizes, and write docs/studies/architectures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pandas as pd

from benchmarks.measurement import run
from mnmt_laws.figures.style import Chart
from studies.analysis.architectures import laws, models, transfer
from studies.analysis.architectures.figures import BLEU, GAP, LOSS, RATIO, draw_points
from studies.analysis.architectures.gaps import EFFECTS, OVER_ENCDEC, SMALL, effects, gaps_to_encdec, trends
from studies.analysis.architectures.models import BRIEF, LAYERS, LONG, NINE, SUPERVISED, SYNTHETIC, ZERO_SHOT
from studies.page import PAGES, Answer, write_page

OUT = PAGES / "architectures"
TABLES = ("tuned", "rates-2400", "zero-shot", "little-text", "runs", "lengths", "layers", "rates")
SCORED = {LONG: "tuned", SYNTHETIC: "zero-shot", NINE: "runs"}
"""Tables with scores of translations, by setting."""

COMPARED = (LONG, BRIEF, NINE)
"""Settings compared by width, and at equal FLOPs."""

FITTED = (*COMPARED, *(f"{origin}, {LONG}" for origin in models.ORIGINS), *models.PARTS.values())
"""Settings with laws."""

_INTERVAL = ["width", "value", "lower", "upper"]

Tables = Mapping[str, pd.DataFrame]


def main(*, folder: Path = OUT, out: Path = OUT, refits: int = 200) -> None:
    """Print and write gaps to the encoder-decoder, effects of single choices, laws and transfer.

    Args:
        folder: Where the run tables are.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
    """
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in TABLES}
    seeds = models.settings(tables)
    losses = {name: models.over_seeds(rows) for name, rows in seeds.items()}
    fits = {name: laws.fit_models(losses[name], refits=refits) for name in FITTED}
    ratios = laws.exponents(fits)
    scores = {name: transfer.scores(tables[key]) for name, key in SCORED.items()}
    answers: dict[str, Answer] = {
        **_gaps(losses),
        **_effects(losses),
        "longer minus brief training": _longer(seeds),
        "rankings": models.rankings(seeds),
        "exponents": ratios,
        "irreducible loss": laws.limits(losses, fits),
        "predictions": [laws.predictions(losses[NINE])],
        **_scores(scores),
        "loss and scores": _joined({name: models.correlations(tables[key]) for name, key in SCORED.items()}),
        **_little_text(tables["little-text"]),
        "learning rates": _rates(tables),
    }
    write_page(out, answers, _charts(losses, scores[LONG], ratios))


def _gaps(losses: Tables) -> dict[str, Answer]:
    """Return gaps to the encoder-decoder: their trends, of equal width too, and by width."""
    rows = {
        **{(name, "size"): gaps_to_encdec(some) for name, some in losses.items() if name != LAYERS},
        **{(name, "FLOPs"): gaps_to_encdec(losses[name], predictor="flops") for name in COMPARED},
    }
    lines = {key: trends(some) for key, some in rows.items()}
    small = {key: some[some["width"].isin(SMALL)] for key, some in rows.items() if key[1] == "FLOPs"}
    lines |= {(name, "FLOPs, when small"): trends(some) for (name, _), some in small.items()}
    lines[LAYERS, "layers"] = trends(gaps_to_encdec(losses[LAYERS], predictor="width"), over="width")
    by_width = {key: some[["model", *_INTERVAL]] for key, some in rows.items() if key[0] in COMPARED}
    as_trained = {name: trends(effects(losses[name], OVER_ENCDEC), by="effect") for name in COMPARED}
    return {
        "gaps to EncDec": _joined(lines, "equal"),
        "gaps by width": _joined(by_width, "equal"),
        "gaps at equal width": _joined(as_trained),
    }


def _effects(losses: Tables) -> dict[str, Answer]:
    """Return effects of single choices: their trends, by width, and when small."""
    left_out = (LAYERS, *models.PARTS.values())
    rows = {name: effects(some) for name, some in losses.items() if name not in left_out}
    small = {name: trends(rows[name][rows[name]["width"].isin(SMALL)], by="effect") for name in COMPARED}
    return {
        "effects": _joined({name: trends(some, by="effect") for name, some in rows.items()}),
        "effects by width": _joined({name: rows[name][["effect", *_INTERVAL]] for name in (LONG, BRIEF)}),
        "effects when small": _joined(small),
    }


def _longer(seeds: Tables) -> pd.DataFrame:
    """Return what longer training does to differences from the encoder-decoder and to single choices."""
    changes = pd.concat(
        models.change(seeds[f"{of}{BRIEF}"], seeds[f"{of}{LONG}"]) for of in ("", f"{ZERO_SHOT}, ")
    )
    return trends(effects(changes, {**OVER_ENCDEC, **EFFECTS}), by="effect")


def _scores(tables: Tables) -> dict[str, Answer]:
    """Return scores by width, and how they differ from the encoder-decoder's and by single choices."""
    parts = {
        (name, metric): trends(effects(some, {**OVER_ENCDEC, **EFFECTS}), by="effect")
        for name in (LONG, SYNTHETIC) for metric, some in tables[name].groupby("metric", sort=False)
    }  # fmt: skip
    return {
        "scores by width": by_width(_joined(tables), ["setting", "metric", "task", "model"]),
        "differences of scores": _joined(parts, "metric"),
    }


def _little_text(rows: pd.DataFrame) -> dict[str, Answer]:
    """Return losses of little text, and by how much they are lower beside another direction."""
    losses, gains = transfer.little_text(rows), transfer.gains(rows)
    return {
        "little text": by_width(losses, ["task", "model"]),
        "gaps with little text": trends(effects(losses, OVER_ENCDEC), by="effect"),
        "gains of transfer": trends(gains),
        "gains of transfer over EncDec's": trends(effects(gains, OVER_ENCDEC), by="effect"),
    }


def _rates(tables: Tables) -> pd.DataFrame:
    """Return losses by learning rate after both lengths, of one seed."""
    tuned = tables["tuned"]
    long = tuned[tuned["step"].eq(tuned["step"].max()) & tuned["seed"].eq(1)]
    return _joined({
        BRIEF: models.compare_rates(tables["rates"]), LONG: models.compare_rates(tables["rates-2400"], long),
    })  # fmt: skip


def by_width(rows: pd.DataFrame, index: list[str]) -> pd.DataFrame:
    """Return a row for each value of some columns, with the mean over seeds at each width."""
    columns = rows.assign(width="d" + rows["width"].astype(str))
    order = list(dict.fromkeys(columns.sort_values("size")["width"]))
    return columns.pivot_table("value", index, "width", sort=False)[order].reset_index()


def _joined(tables: Mapping[Any, pd.DataFrame], *names: str) -> pd.DataFrame:
    """Return tables as one, with their keys in columns: `setting`, and perhaps others."""
    joined = pd.concat(tables, names=["setting", *names])
    return joined.reset_index(["setting", *names])


def _charts(losses: Tables, scores: pd.DataFrame, ratios: pd.DataFrame) -> dict[str, Chart]:
    relative = {"relative": "value", "relative_lower": "lower", "relative_upper": "upper"}
    others = ratios[ratios["model"].ne(models.ENCDEC)].rename(columns=relative)
    layers = losses[LAYERS].rename(columns={"width": "layers"})
    return {
        "gaps": draw_points({
            f"{name}, at equal {what}": (gaps_to_encdec(losses[name], predictor=by), GAP)
            for name in (BRIEF, LONG) for what, by in (("size", "size"), ("FLOPs", "flops"))
        }, level=0),
        "transfer": draw_points({
            f"{task}, {name}": (models.of_task(scores[scores["metric"].eq(name.lower())], task), what)
            for name, what in (("loss", LOSS), (BLEU, BLEU)) for task in (SUPERVISED, ZERO_SHOT)
        }),
        "exponents": draw_points({"": (others, RATIO)}, over="setting", level=1),
        "layers": draw_points({"": (layers, LOSS)}, over="layers"),
    }  # fmt: skip


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-architectures"})
