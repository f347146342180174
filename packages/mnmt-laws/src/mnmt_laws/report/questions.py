"""The questions a report answers where the table allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from mnmt_laws.answers.compare import compare
from mnmt_laws.answers.design import Design, design
from mnmt_laws.answers.effective import EffectiveFractions, fractions_of_testsets
from mnmt_laws.answers.frontier import observed_range
from mnmt_laws.answers.more_tasks import predict_more_tasks
from mnmt_laws.answers.recommend import Recommendation, recommend
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.parameters import parameter_frame
from mnmt_laws.fitting.profile import profile_intervals
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.table import RunTable

Answer = TypeVar("Answer")

_LARGER = 2.0  # times the largest size observed: where advice is asked for
_FEWEST_REFITS = 10


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How the questions are put."""

    table: RunTable
    observations: Observations
    objective: str
    uncertainty: Uncertainty


def answer_questions(joint: LawFit, capacity: LawFit, setting: Setting) -> dict[str, Any]:
    """Optional fields of an `Analysis`; None where a table cannot answer."""
    rows, objective, uncertainty = setting.observations, setting.objective, setting.uncertainty
    return {
        "comparison": _if_possible(lambda: compare(rows, objective=objective, uncertainty=uncertainty)),
        "testsets": _if_possible(lambda: _testsets(setting)),
        "more_tasks": _if_possible(
            lambda: predict_more_tasks(rows, objective=objective, uncertainty=uncertainty)
        ),
        "recommendation": _if_possible(lambda: _recommendation(capacity)),
        "design": _if_possible(lambda: _design(capacity)),
        "intervals": _intervals(joint),
    }


def _if_possible(ask: Callable[[], Answer]) -> Answer | None:
    try:
        return ask()
    except TableError:
        return None


def _testsets(setting: Setting) -> Mapping[str, EffectiveFractions] | None:
    """The fractions of every test set, where there are several."""
    found = fractions_of_testsets(
        setting.table,
        metric=setting.observations.metric,
        architecture=setting.observations.frame["architecture"].iloc[0] or None,
        objective=setting.objective,
        uncertainty=setting.uncertainty,
    )
    return found if len(found) > 1 else None


def _recommendation(capacity: LawFit) -> Recommendation | None:
    return recommend(capacity, size=_size_asked(capacity)) if _has_mixtures(capacity) else None


def _design(capacity: LawFit) -> Design | None:
    """The runs that would most narrow down the best weight at a larger size."""
    if not _has_mixtures(capacity) or capacity.draws.sizes["draw"] < _FEWEST_REFITS:
        return None
    return design(capacity, quantity=f"weight:{capacity.tasks[0]}@size={_size_asked(capacity):.6g}")


def _has_mixtures(capacity: LawFit) -> bool:
    if len(capacity.tasks) < 2:
        return False
    observed_range(capacity.observations)  # raises where no run mixes the tasks
    return True


def _size_asked(capacity: LawFit) -> float:
    return _LARGER * float(capacity.observations.frame["size"].max())


def _intervals(joint: LawFit) -> pd.DataFrame | None:
    """α and L∞ of the joint law with their intervals by refits and by profile likelihood."""
    rows = parameter_frame(joint)
    rows = rows[rows["name"].isin(["alpha", "l_inf"])]
    refits = rows.assign(parameter=rows["name"], method="refits", estimate=rows["value"])
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    if not find_objective(joint.objective).squared:
        return refits[columns]
    profiled = profile_intervals(joint)
    ends = [
        profiled[name].sel(task=task).to_numpy()
        for task, name in zip(rows["task"], rows["name"], strict=True)
    ]
    profile = refits.assign(method="profile", lower=[end[0] for end in ends], upper=[end[1] for end in ends])
    both = pd.concat([refits, profile]) if joint.draws.sizes["draw"] else profile
    return both[columns].reset_index(drop=True)
