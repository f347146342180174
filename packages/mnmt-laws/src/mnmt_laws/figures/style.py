"""The look that all figures share."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

MARKER_SIZE = 5.5
P = ParamSpec("P")

INK, MUTED, GRID = "#1d2433", "#5b6475", "#e7eaf0"
TASK_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's palette: distinguishable with any colour vision."""


_RC: Any = {
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": "#b8bfcc",
    "axes.labelcolor": INK,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.9,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.7,
    "lines.markersize": MARKER_SIZE,
    "svg.hashsalt": "mnmt-laws",
    "figure.constrained_layout.use": True,
}
_DARK_TO_LIGHT = mpl.colormaps["viridis"](np.linspace(0.92, 0.0, 256))
_SEQUENTIAL = LinearSegmentedColormap.from_list("mnmt", _DARK_TO_LIGHT)


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Apply the shared look to a function that draws a figure."""

    @wraps(draw)
    def draw_in_style(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(_RC):
            return draw(*args, **kwargs)

    return draw_in_style


def sequential(position: float) -> tuple[float, float, float, float]:
    """Return the colour of a position in [0, 1], from light to dark; it works with any colour vision."""
    return _SEQUENTIAL(float(np.clip(position, 0, 1)))


def task_color(task: str, tasks: Sequence[str]) -> str:
    """Return the colour of a task among those of a figure."""
    return TASK_COLORS[list(tasks).index(task) % len(TASK_COLORS)]


def log_position(value: float, low: float, high: float) -> float:
    """Return where `value` lies between `low` and `high` on a logarithmic scale, in [0, 1]."""
    return 1.0 if high <= low else float(np.log(value / low) / np.log(high / low))


def format_size(size: float, _: object = None) -> str:
    """Return a number of parameters as `37.2K`, `1.3M` or `2B`."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if size >= limit:
            return f"{size / limit:.3g}{unit}"
    return f"{size:.3g}"


def log_size_axis(axes: Axes, low: float, high: float) -> None:
    """Make the horizontal axis a logarithmic one of model sizes."""
    axes.set_xscale("log")
    axes.set_xlim(low / 1.15, high * 1.15)
    subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(format_size))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("model size N (non-embedding parameters)")


def log_value_axis(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic, with plain numbers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1e5 else f"{value:.0e}"))
    axis.set_minor_locator(NullLocator())


def spread_axis(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic if its values span more than a factor of three."""
    low, high = axis.get_view_interval()
    if low > 0 and high / low > 3:
        log_value_axis(axis)


def diagonal(axes: Axes, values: NDArray[np.float64]) -> None:
    """Make the axes square around positive values, and draw the line where both coordinates agree."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = max(high / low, 1.01) ** 0.06
    span = [low / margin, high * margin]
    axes.plot(span, span, "--", color=MUTED, lw=1.2, zorder=1)
    axes.set(xlim=span, ylim=span)


def legend_below(figure: Figure, handles: list[Line2D], columns: int = 4) -> None:
    """Draw a legend under the axes."""
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(columns, len(handles)),
        handlelength=1.6,
        columnspacing=1.3,
    )


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format its suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_RC):
        figure.savefig(path, dpi=160)


def to_svg(figure: Figure) -> bytes:
    """Return the figure as SVG, the same bytes every time."""
    buffer = io.BytesIO()
    with mpl.rc_context(_RC):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
