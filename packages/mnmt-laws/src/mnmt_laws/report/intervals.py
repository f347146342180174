"""Intervals of the joint law by several methods, side by side."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.parameters import parameter_frame
from mnmt_laws.fitting.profile import profile_intervals
from mnmt_laws.solver.objective import find_objective


def intervals_by_method(joint: LawFit) -> pd.DataFrame | None:
    """Return α and L∞ of the joint law with their intervals by refits and by profile likelihood."""
    rows = parameter_frame(joint)
    rows = rows[rows["name"].isin(["alpha", "l_inf"])]
    refits = rows.assign(parameter=rows["name"], method="refits", estimate=rows["value"])
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    if not find_objective(joint.objective).squared:
        return refits[columns]
    intervals = profile_intervals(joint)
    ends = [
        intervals[name].sel(task=task).to_numpy()
        for task, name in zip(rows["task"], rows["name"], strict=True)
    ]
    profile = refits.assign(method="profile", lower=[end[0] for end in ends], upper=[end[1] for end in ends])
    both = pd.concat([refits, profile]) if joint.draws.sizes["draw"] else profile
    return both[columns].reset_index(drop=True)
