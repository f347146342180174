"""Draw the learning rate of a run over its steps.

    python docs/model/draw_schedule.py

writes docs/model/figures/schedule.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from mnmt_model import TrainConfig
from mnmt_model.optim import learning_rate

FIGURE = Path(__file__).parent / "figures" / "schedule.svg"
STEPS, WARMUP, CONSTANT, COOLDOWN = 50_000, 2_000, 10_000, 15_000
INK, MUTED, GRID = "#1d2433", "#5b6475", "#e7eaf0"


def draw() -> Figure:
    """Return the learning rate with and without a cool-down, as a share of the peak."""
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.add_subplot(xlim=(0, STEPS), ylim=(0, 1.08), xlabel="step", ylabel="rate / learning_rate")
    steps = range(1, STEPS + 1, 25)
    for cooldown, colour, style in ((0, MUTED, "--"), (COOLDOWN, "#0072b2", "-")):
        config = TrainConfig(
            learning_rate=1.0,
            steps=STEPS,
            warmup_steps=WARMUP,
            constant_steps=CONSTANT,
            cooldown_steps=cooldown,
        )
        axes.plot(steps, [learning_rate(config, step) for step in steps], style, color=colour)
    for step, name, rotation in (
        (WARMUP, "warmup_steps", 90),
        (CONSTANT, "constant_steps", 90),
        (STEPS - COOLDOWN, "steps - cooldown_steps", 0),
    ):
        place = {"x": step + 400} if rotation else {"x": step - 400, "ha": "right"}
        axes.axvline(step, color="#b8bfcc", linewidth=0.9, zorder=0)
        axes.text(**place, y=0.03, s=name, color=MUTED, fontsize=9.5, rotation=rotation, va="bottom")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


if __name__ == "__main__":
    look: Any = {
        "font.size": 10.5,
        "text.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#b8bfcc",
        "axes.labelcolor": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "svg.hashsalt": "mnmt-model",
    }
    with mpl.rc_context(look):
        draw().savefig(FIGURE, metadata={"Date": None, "Creator": None})
