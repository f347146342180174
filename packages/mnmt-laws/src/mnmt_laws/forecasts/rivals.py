"""The laws that a table admits, and the rows that all of them can be fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import differ_at_same_weight
from mnmt_laws.forecasts.target import at_length, usual_target
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations

RIVALS: dict[LawName, str] = {
    "joint": "β varies",
    "limit-varies": "L∞ varies",
    "exponent-varies": "α varies",
    "per-weighting": "all vary",
}
"""The laws with a value for each weight, and the parameter that the mixture moves in each."""

_FORMULAS: dict[str, str] = {
    "capacity": "β varies by f̂(p)",
    "linear-capacity": "β varies by linear f̂(p)",
    "simplex-capacity": "β varies by f̂ of the mixture",
    "transfer-capacity": "β varies by f̂ with transfer",
    "mixture-limit": "L∞ varies by the mixture",
    "mixture-additive": "a term of the mixture is added",
}
_STORIES = {
    **dict.fromkeys(("joint", *list(_FORMULAS)[:4]), "β varies"),
    "mixture-limit": "L∞ varies",
    "mixture-additive": "L∞ varies",
}
_FEWEST = 3  # sizes or weights that an exponent needs
_FEWEST_LENGTHS = 2  # over weights, the tokens of a task have more values than those of all tasks
_VARIED = 1.2  # ratio of the longest to the shortest training above which laws of length are tried


def label_of(law: str) -> str:
    """Return the parameter that the mixture moves in a law, in words, or the law's name."""
    labels: dict[str, str] = dict([*RIVALS.items(), *_FORMULAS.items()])
    return labels.get(law, f"the {law} law")


def story_of(law: str) -> str:
    """Return the meaning of a law; with f̂(p) β varies, by a formula."""
    return _STORIES.get(law, label_of(law))


def is_keyed(law: Law) -> bool:
    """Return whether a law has a value for each weight of a task."""
    return any(parameter.varies == "weight" for parameter in law.parameters)


def find_rivals(observations: Observations, laws: Sequence[LawName | Law] | None = None) -> list[Law]:
    """Return the requested laws, or all that a table admits.

    A law is admitted if the table has all of its predictors, if it pools neither mixtures nor lengths that
    the table distinguishes, and if its rows outnumber its parameters. If the table has rows of weight 0, laws
    must predict them; where fewer than two can, these rows are left out. If no law is admitted and all models
    have one size, the only rival is the usual law.

    Raises:
        ValueError: If a requested law is unknown.
    """
    if laws is not None:
        for law in laws:
            if not isinstance(law, Law) and law not in LAWS:
                raise ArgumentError(f"`laws` must name laws among {', '.join(LAWS)}, but names {law!r}.")
        return [law if isinstance(law, Law) else LAWS[law] for law in laws]
    admitted = [law for law in LAWS.values() if _admits(observations, law)]
    zero_shot = [law for law in admitted if law.zero_shot]
    needed = bool(observations.rows_to_fit(zero_shot=True)["weight"].eq(0).any())
    if not admitted and "size" not in (usual := usual_law(observations)).predictors:
        return [usual]
    return zero_shot if needed and len(zero_shot) > 1 else admitted


def _admits(observations: Observations, law: Law) -> bool:
    rows = observations.rows_to_fit(zero_shot=law.zero_shot)
    if rows.empty or not _has_predictors(rows, law):
        return False
    lengths = observations.lengths
    every = lengths.column == "tokens" and bool(lengths.by_run.notna().all())
    if lengths.within and every and not law.knows_length:
        return False
    counts = rows.groupby("task")["mixture"].nunique(), rows.groupby("task")["weight"].nunique()
    if max(int(count.max()) for count in counts) > 1:
        return _tells_mixtures_apart(observations, rows, law)
    return not _reads_mixture(law)


def _has_predictors(rows: pd.DataFrame, law: Law) -> bool:
    """Return whether a law's predictors have enough values, and size varies only if the law knows it."""
    read = [name for name in law.predictors if name not in ("weight", "partners")]
    for name in read:
        values = rows[name] if name in rows else pd.Series(np.nan, index=rows.index)
        fewest = _FEWEST_LENGTHS if name == "tokens" else _FEWEST
        if values.isna().any() or values.nunique() < fewest:
            return False
    if "flops" in read or "encoder_size" in read:
        return False  # other measures of size, not rivals of the laws of size
    if "size" not in read and rows["size"].nunique() > 1:
        return False
    return "tokens" not in read or lengths_vary(rows)


def lengths_vary(rows: pd.DataFrame) -> bool:
    """Return whether models of one size were trained for different lengths."""
    if rows.empty or rows["tokens"].isna().any():
        return False
    by_size = rows.groupby("size")["tokens"]
    few_sizes = (by_size.max() / by_size.min()).max() > _VARIED
    return bool(few_sizes) or (rows["size"].nunique() > 12 and rows["tokens"].nunique() > 12)


def is_mixed(observations: Observations) -> bool:
    """Return whether models of several mixtures were trained."""
    rows = observations.rows_to_fit(zero_shot=True)
    return rows["weight"].nunique() > 1 or rows["mixture"].nunique() > 1


def usual_law(observations: Observations) -> Law:
    """Return the law that suits the table's models, without a look at their losses."""
    rows = observations.rows_to_fit(zero_shot=True)
    longer = lengths_vary(observations.fit)
    if is_mixed(observations) and rows["size"].nunique() == 1:
        return LAWS["transfer"]
    if rows["weight"].eq(0).all():
        return LAWS["transfer-share" if longer else "transfer-capacity"]
    if not is_mixed(observations):
        return LAWS["chinchilla" if longer else "power"]
    if any(
        differ_at_same_weight(task_rows, observations, str(task))
        for task, task_rows in rows[rows["weight"] > 0].groupby("task")
    ):
        return LAWS["simplex-share" if longer else "simplex-capacity"]
    return LAWS["share-tied" if longer else "capacity"]


def at_longest(observations: Observations) -> tuple[Observations, tuple[str, ...]]:
    """Return the longest training of models of one size and several lengths, and a line that says so."""
    tokens, fixed = usual_target(observations).tokens, "size" not in usual_law(observations).predictors
    longest = at_length(observations, tokens) if fixed and tokens else None
    if longest is None:
        return observations, ()
    trained = observations.lengths.describe()
    line = f"models of one size were trained for {trained}: laws are fitted at the longest; see --at."
    return longest, (line,)


def _reads_mixture(law: Law) -> bool:
    return is_keyed(law) or law.knows_mixture


def _tells_mixtures_apart(observations: Observations, rows: pd.DataFrame, law: Law) -> bool:
    if not _reads_mixture(law):
        return False
    whole = any(
        differ_at_same_weight(task_rows, observations, str(task)) or bool(task_rows["weight"].eq(0).all())
        for task, task_rows in rows.groupby("task")
    )
    if whole != ("partners" in law.predictors):
        return False
    partners = len(observations.mixtures_of(rows).columns) - 1 if whole else 0
    widths = {"weight": rows.groupby("task")["weight"].nunique().min(), "partner": partners, None: 1}
    count = sum(int(widths[parameter.varies]) for parameter in law.parameters)
    return bool(is_keyed(law) or count < rows.groupby("task").size().min())


def keep_comparable(observations: Observations, laws: Sequence[Law]) -> Observations:
    """Return observations with only the rows that every law can be fitted to.

    For laws keyed by weight these are weights of three sizes, in tasks with two such weights. Unless all laws
    predict zero-shot tasks, weights are above 0.

    Raises:
        TableError: If no rows remain.
    """
    frame = observations.frame
    usable = frame["role"].eq("fit") & (frame["weight"].gt(0) | all(law.zero_shot for law in laws))
    if any(is_keyed(law) for law in laws):
        rows = frame[usable]
        rows = rows[rows.groupby(["task", "weight"])["size"].transform("nunique") >= _FEWEST]
        rows = rows[rows.groupby("task")["weight"].transform("nunique") >= 2]
        usable &= frame.index.isin(rows.index)
    if not usable.any() or not laws:
        raise TableError(
            f"{observations.source}: a comparison of laws needs a task with two weights of three sizes each; "
            "add runs."
        )
    role = frame["role"].where(usable | frame["role"].ne("fit"), "left-out")
    return replace(observations, frame=frame.assign(role=role))
