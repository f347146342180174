"""Whether other learning rates than the study's one change what its tables say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from studies.analysis.splitting.tables import FOLDER, read

USUAL_RATE = 0.05
"""The rate of all other tables."""

_RUN = r"-rate-(?P<rate>\d+)_"


def read_rates(name: str) -> pd.DataFrame:
    """Return the losses of a table whose runs' names tell their rate (`d8-rate-0125`), with `rate`."""
    if not (FOLDER / f"{name}.csv").exists():
        return pd.DataFrame()
    rows = read(name)
    return rows.assign(rate=("0." + rows["run"].str.extract(_RUN)["rate"]).astype(float))


def tuned(name: str = "tuning") -> Iterator[dict[str, object]]:
    """Yield for each size, length and task the best rate, and what the usual rate loses against it.

    `by rate` holds the geometric means over seeds of the reducible loss, and `lost` the factor by which that
    at the usual rate is above the least.
    """
    rows = read_rates(name)
    if rows.empty:
        return
    for key, cell in rows.groupby(["size", "step", "task", "weight"]):
        means = np.exp(np.log(cell["reducible"]).groupby(cell["rate"]).mean())
        yield {
            **dict(zip(("size", "step", "task", "weight"), key, strict=True)),
            "by rate": {f"{rate:g}": float(value) for rate, value in means.items()},
            "best rate": float(means.idxmin()), "lost": float(means[USUAL_RATE] / means.min()),
        }  # fmt: skip


def gaps(name: str = "tuning", *, task: str = "xx-aa") -> Iterator[dict[str, object]]:
    """Yield how many times a task's loss alone it has when shared, at the usual rate and at the best of each.

    Both are ratios of geometric means over seeds; the best rate is chosen for each weight by itself.
    """
    cells = pd.DataFrame(tuned(name))
    if cells.empty:
        return
    for (size, step), some in cells[cells["task"].eq(task)].groupby(["size", "step"]):
        losses = {row["weight"]: row["by rate"] for row in some.to_dict("records")}
        alone = losses.pop(1.0)
        for weight, shared in losses.items():
            usual = f"{USUAL_RATE:g}"
            yield {
                "size": size, "step": step, "task": task, "weight": weight,
                "usual": shared[usual] / alone[usual],
                "tuned": min(shared.values()) / min(alone.values()),
            }  # fmt: skip


def long_rates() -> pd.DataFrame:
    """Return every long run at a smaller rate, with its reducible loss."""
    rows = read_rates("rates")
    if rows.empty:
        return rows
    columns = ["task", "weight", "rate", "step", "seed", "reducible"]
    return rows.sort_values(columns)[columns]
