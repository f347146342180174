"""Choices of training against plain training, by pairs of runs with the same seed."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import MUTED, TASK_COLORS, Chart, color, styled
from studies.analysis.intervals import means_of

PLAIN = "plain"
BOTH = "both"
NAMES = {"explicit": "losses weighted", "smoothed": "label smoothing", "post-norm": "norms after"}
_RUN = r"^(?P<choice>[a-z-]+)-d(?P<width>\d+)_"


def read_choices(table: Path) -> pd.DataFrame:
    """Return the losses of a table, with the choice and the width that a run's name tells."""
    rows = pd.read_csv(table)
    rows = rows[rows["metric"].eq("loss")]
    names = rows["run"].str.extract(_RUN)
    return rows.assign(choice=names["choice"], width=names["width"].astype(int))


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean losses less that of the plain run of the same seed, by width and over both, nats a token.

    With 95% intervals; over both widths, pairs are taken as repetitions of one difference.
    """
    losses = rows.pivot(index=["testset", "task", "width", "seed"], columns="choice", values="value")
    less = losses.drop(columns=PLAIN).sub(losses[PLAIN], axis=0).stack().rename("less").reset_index()
    both = pd.concat([less.assign(width="d" + less["width"].astype(str)), less.assign(width=BOTH)])
    return means_of(both.groupby(["testset", "task", "choice", "width"])["less"]).reset_index()


def seed_noise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the standard deviation of plain training over seeds, by test set, task and width."""
    cells = rows[rows["choice"].eq(PLAIN)].groupby(["testset", "task", "width"])["value"]
    return cells.agg(["mean", "std", "count"]).reset_index()


def draw_choices(summary: pd.DataFrame) -> Chart:
    """Draw the mean difference of each choice with its interval, a panel for each task.

    Args:
        summary: As `summarise` returns it, of one test set.
    """
    named = summary.replace({"choice": NAMES})
    ends = alt.Scale(domain=[named["lower"].min(), named["upper"].max()], padding=10)
    panels = [_choices_panel(part, str(task), ends) for task, part in named.groupby("task")]
    return styled(*panels, columns=2)


def _choices_panel(rows: pd.DataFrame, task: str, scale: alt.Scale) -> alt.LayerChart:
    widths = [*rows.loc[rows["width"].ne(BOTH), "width"].unique(), BOTH]
    base = alt.Chart(marks.data(rows)).encode(yOffset=alt.YOffset("width:N", sort=widths))
    bars = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x="lower:Q", x2="upper:Q")
    zero = alt.Chart(marks.data(pd.DataFrame({"mean": [0.0]}))).mark_rule(strokeDash=marks.DASHED)
    zero = zero.encode(y=alt.value(0), y2=alt.value("height"), color=alt.value(MUTED))
    titles = {"choice": "choice", "width": "width", "mean": "difference"}
    points = marks.with_tooltips(base.mark_point(filled=True, size=55), rows, titles)
    title = "loss minus that of plain training (nats a token)"
    x = alt.X("mean:Q", title=title, axis=alt.Axis(tickCount=5), scale=scale)
    y = alt.Y("choice:N", title=None, sort=[*NAMES.values()])
    key = color("width", widths, TASK_COLORS[: len(widths)])
    return marks.panel(
        zero, bars, points, x=x, y=y, color=key, title=task, height=60 * rows["choice"].nunique()
    )
