"""Compare the nine models of Zhang et al. 2022 over their sizes, and write docs/studies/architectures.

    python -m studies.analysis.architectures

`--runs results/architectures/runs` first writes the table of losses by length, lengths.csv.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, print_table, run
from mnmt_laws import LawFit
from mnmt_laws.figures.style import TASK_COLORS, Chart
from studies.analysis.architectures.gaps import EFFECTS, draw_over_size, effects, gaps_to_encdec, trends
from studies.analysis.architectures.laws import (
    Predictor,
    draw_architectures,
    fit_architectures,
    parameters_of,
)
from studies.analysis.architectures.models import (
    ENCDEC,
    MODELS,
    SUPERVISED,
    ZERO_SHOT,
    compare_lengths,
    compare_rates,
    gaps_by_length,
    laws_by_length,
    read_losses,
    write_lengths,
)
from studies.page import PAGES, write_page

OUT = PAGES / "architectures"
KINDS = (SUPERVISED, ZERO_SHOT)
METRICS = {"bleu": "BLEU", "chrf": "chrF", "language": "in the right language (%)"}
COLORS = dict(zip(MODELS.values(), TASK_COLORS, strict=False))


def main(
    *,
    table: Path = OUT / "runs.csv",
    lengths: Path = OUT / "lengths.csv",
    longer: Path = OUT / "longer.csv",
    rates: Path = OUT / "rates.csv",
    out: Path = OUT,
    refits: int = 200,
    runs: Path | None = None,
) -> None:
    """Print and write laws, gaps to the encoder-decoder and effects of single choices.

    Args:
        table: Run table of the study.
        lengths: Run table of its losses by length of the source.
        longer: Run table of some of its models, trained for longer.
        rates: Run table of all its models at one width, with other learning rates.
        out: Folder for results.json and the figures.
        refits: Refits for the intervals of the laws.
        runs: Folder of the run records, of which `lengths` is made.
    """
    if not table.exists():
        print(f"{table} is not there.")
        return
    if runs is not None:
        write_lengths(runs, pd.read_csv(table), lengths)
    losses, metrics = read_losses(table), scores_of(table)
    by_size, by_flops = laws_of(losses, "size", refits), laws_of(losses, "flops", refits)
    gaps, parts = gaps_of(losses), effects(losses)
    tables = {
        "laws": parameters_of(by_size), "laws over FLOPs": parameters_of(by_flops),
        "gaps to EncDec of equal size": trends(gaps, by="model", column="gap"),
        "gaps to EncDec of equal FLOPs": trends(gaps_of(losses, "flops"), by="model", column="gap"),
        "effects": trends(parts[parts["task"].isin(KINDS)], by="effect", column="difference", pair="pair"),
        "losses": by_width(losses), "spread over seeds": by_width(losses, "spread"),
        **{metric: by_width(scores) for metric, scores in metrics.items()},
    }  # fmt: skip
    if longer.exists():
        tables["longer training"] = compare_lengths(pd.read_csv(table), pd.read_csv(longer))
    if rates.exists():
        tables["learning rates"] = compare_rates(rates)
    if lengths.exists():
        tables["laws by length"] = laws_by_length(lengths, refits=refits)
        tables["gaps by length"] = pd.DataFrame(gaps_by_length(lengths))
    for name, frame in tables.items():
        print(f"\n### {name}\n")
        print_table(frame[frame["task"].isin(KINDS)].round(4).to_dict("records"))
    facts: Figures = {"n_0": start_of(losses, "size"), "flops_0": start_of(losses, "flops")}
    charts = charts_of(by_size, gaps, parts)
    if "bleu" in metrics:
        charts["bleu"] = chart_of_bleu(metrics["bleu"])
    write_page(out, facts | {name: frame.to_dict("records") for name, frame in tables.items()}, charts)


def scores_of(table: Path) -> dict[str, pd.DataFrame]:
    """Return the table's scores of translations, by metric; `language` is the share in the right language."""
    scores = {metric: read_losses(table, metric=metric) for metric in METRICS}
    return {metric: frame for metric, frame in scores.items() if len(frame)}


def laws_of(losses: pd.DataFrame, predictor: Predictor, refits: int) -> dict[str, LawFit]:
    """Fit eq. 7 to every model, to the tasks trained on and their mean, with N_0 the smallest EncDec."""
    rows = losses[losses["weight"].gt(0)]
    return fit_architectures(rows, n_0=start_of(losses, predictor), refits=refits, predictor=predictor)


def start_of(losses: pd.DataFrame, predictor: Predictor) -> float:
    """Return the parameters or FLOPs of the smallest encoder-decoder."""
    return float(losses.loc[losses["weight"].gt(0) & losses["model"].eq(ENCDEC), predictor].min())


def by_width(rows: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Return a row for each task and model, with what a column has at each width."""
    columns = rows.assign(width="d" + rows["width"].astype(str))
    order = list(dict.fromkeys(columns.sort_values("size")["width"]))
    return columns.pivot(index=["task", "model"], columns="width", values=column)[order].reset_index()


def gaps_of(losses: pd.DataFrame, predictor: Predictor = "size") -> pd.DataFrame:
    """Return the gaps of every language model in both kinds of tasks, and of all language models' mean."""
    gaps = gaps_to_encdec(losses[losses["task"].isin(KINDS)], predictor=predictor)
    mean = gaps.groupby(["task", "width"], as_index=False)[["size", "gap"]].mean()
    return pd.concat([gaps, mean.assign(model="mean of the eight")], ignore_index=True)


def charts_of(by_size: dict[str, LawFit], gaps: pd.DataFrame, parts: pd.DataFrame) -> dict[str, Chart]:
    """Return the page's figures."""
    fits = {name: by_size[name] for name in MODELS.values()}
    gaps = gaps[gaps["model"].isin(COLORS)]
    shades = {name: shade for name, shade in COLORS.items() if name != ENCDEC}
    effect_shades = dict(zip(EFFECTS, TASK_COLORS, strict=False))
    mean_effects = parts.groupby(["effect", "task", "size"], as_index=False)["difference"].mean()
    return {
        "losses": draw_architectures(fits, task=SUPERVISED),
        "gaps": draw_over_size(gaps.assign(label=gaps["model"]), "gap", shades,
                               "loss less EncDec's of equal size (nats per token)", panels=KINDS),
        "effects": draw_over_size(mean_effects.assign(label=mean_effects["effect"]), "difference",
                                  effect_shades, "difference of loss (nats per token)", panels=KINDS),
    }  # fmt: skip


def chart_of_bleu(scores: pd.DataFrame) -> Chart:
    """Return a figure of BLEU over size, supervised and zero-shot."""
    rows = scores.assign(label=scores["model"])
    return draw_over_size(rows, "value", COLORS, METRICS["bleu"], panels=KINDS, zero=False)


if __name__ == "__main__":
    run(main, smoke={"refits": 4, "out": Path(gettempdir()) / "mnmt-architectures"})
