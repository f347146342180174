"""Simulate a practitioner's choice of a mixture, and write docs/studies/decisions.

python -m studies.analysis.decisions

The draws take most of the time; those in choices.csv are not simulated again unless the file is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Names, print_table, run
from mnmt_laws.answers.decision import Want
from mnmt_laws.arrays import Array
from studies.analysis.decisions.advice import OURS
from studies.analysis.decisions.figures import draw_regret, draw_weights
from studies.analysis.decisions.objectives import (
    Objective,
    TaskCurve,
    curves_of,
    losses_at,
    perturbed_losses,
)
from studies.analysis.decisions.purchases import Market, parse_purchase, read_market
from studies.analysis.decisions.real_text import TABLES, decide_real_text, summarise_decisions
from studies.analysis.decisions.simulation import (
    complete,
    paired_differences,
    regrets_of,
    summarise,
    without_luck,
)
from studies.page import PAGES, write_page

TABLE = PAGES / "splitting/unrelated.csv"
OUT = PAGES / "decisions"
SLACK = 1.25
"""What the target allows the first task's reducible loss, relative to that of a model of its own."""

PERTURBATIONS = 300


def main(
    *,
    table: Path = TABLE,
    out: Path = OUT,
    draws: int = 11,
    purchases: Names = ("1 long", "2 long", "4 long"),
    panel: str = "1 long",
    real_text: Names = TABLES,
) -> None:
    """Print and write what every method reached.

    Args:
        table: Run table of two tasks.
        out: Folder for choices.csv, results.json and the figures.
        draws: Draws in all, with those in choices.csv.
        purchases: What the laws' small runs may cost, in trainings of the target, and their lengths: `long`,
            or by lot, `mixed`.
        panel: The purchase whose weights are drawn.
        real_text: The tables of real text to decide on.
    """
    market = read_market(table)
    curves = curves_of(market.target)
    objectives = objectives_of(curves)
    parts = [parse_purchase(text) for text in purchases]
    out.mkdir(parents=True, exist_ok=True)
    choices = complete(out / "choices.csv", market, objectives, draws=draws, purchases=parts)
    losses = losses_at(curves, market.problem.mixtures)
    regrets = regrets_of(objectives, losses)
    perturbed = perturbed_losses(curves, market.problem.mixtures, count=PERTURBATIONS)
    others = [regrets_of(objectives, each) for each in perturbed]
    tasks = market.problem.tasks
    every_run = without_luck(market, objectives).assign(runs="every run")
    tables = {
        "summary": summarise(choices, regrets, losses, tasks),
        "paired": paired_differences(choices, regrets, others, OURS),
        "bias": summarise(every_run, regrets, losses, tasks),
    }
    facts = facts_of(market, curves) | {"oracle": oracle_of(market, regrets, others, losses)}
    print_all(tables, facts)
    decisions = pd.DataFrame(decide_real_text(real_text))
    tables |= {"real_text": summarise_decisions(decisions), "real_text_decisions": decisions}
    print_table(tables["real_text"].round(4).to_dict("records"))
    charts = {
        "regret": draw_regret(tables["summary"]),
        "weights": draw_weights(choices, market, regrets, runs=panel),
    }
    write_page(out, facts | {name: table.to_dict("records") for name, table in tables.items()}, charts)


def objectives_of(curves: dict[str, TaskCurve]) -> list[Objective]:
    """Return the equal mean, a preference of three to one, the worse task, and a target of the first."""
    first, alone = next(iter(curves.items()))
    most = round(alone.irreducible + SLACK * (float(alone.at(np.ones(1))[0]) - alone.irreducible), 3)
    tasks = list(curves)
    equal = dict.fromkeys(tasks, 0.5)
    wants = {
        "equal mean": Want(importance=equal),
        f"{first} counts three times": Want(importance=dict(zip(tasks, (0.75, 0.25), strict=True))),
        "the worse of both": Want(aim="worst", importance=equal),
        f"{first} at most {most:g}, then the other": Want(
            aim="targets", importance=equal, targets={first: most}
        ),
    }
    return [Objective(name=name, want=want) for name, want in wants.items()]


def facts_of(market: Market, curves: dict[str, TaskCurve]) -> Figures:
    """Return what the target is, and how well its losses are known, in nats per token."""
    return {
        "size": market.problem.size,
        "tokens": market.problem.tokens,
        "flops": market.unit,
        "small_sizes": sorted(market.small["size"].unique()),
        "small_costs": (market.small_costs / market.unit).round(4).to_list(),
        "seeds": int(market.target["seed"].nunique()),
        "irreducible": {task: curve.irreducible for task, curve in curves.items()},
        "target_losses": {
            task: dict(zip(curve.weights.tolist(), curve.losses.tolist(), strict=True))
            for task, curve in curves.items()
        },
        "standard_error": {task: curve.error_at_half for task, curve in curves.items()},
        "leave_one_out": {task: curve.leave_one_out().tolist() for task, curve in curves.items()},
    }


def oracle_of(
    market: Market, regrets: dict[str, Array], others: Sequence[dict[str, Array]], losses: Array
) -> Figures:
    """Return each objective's best weight, its 95% interval over other seeds, and the losses there."""
    weights = market.problem.mixtures[:, 0]
    oracle = {}
    for name, regret in regrets.items():
        bests = [weights[each[name].argmin()] for each in others]
        oracle[name] = {
            "weight": float(weights[regret.argmin()]),
            "interval": np.quantile(bests, [0.025, 0.975]).tolist(),
            "losses": losses[regret.argmin()].tolist(),
        }
    return oracle


def print_all(tables: dict[str, pd.DataFrame], facts: Figures) -> None:
    """Print every table, objective by objective, and what they rest on."""
    for title, table in tables.items():
        for objective, rows in table.groupby("objective", sort=False):
            print(f"\n### {title}: {objective}\n")
            print_table(rows.drop(columns="objective").round(4).to_dict("records"))
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))


if __name__ == "__main__":
    SMOKE = Path(gettempdir()) / "mnmt-decisions"
    run(main, smoke={"draws": 1, "purchases": ("1 long",), "out": SMOKE, "real_text": ("en-de-fr",)})
