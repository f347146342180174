"""Study files (TOML) of runs to train, which mnmt-model's sweep reads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.answers.design.candidates import CandidateRun
from mnmt_laws.answers.design.shapes import Shape, sizes_of
from mnmt_laws.forecasts.target import NEAR
from mnmt_laws.tables.study_file import read_study

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"\s*\[\[?\s*([\w.\"' -]+?)\s*\]\]?\s*(#.*)?$")


@dataclass(frozen=True, kw_only=True)
class Study:
    """The text of a study file, one grid of sizes × mixtures."""

    text: str
    runs: int
    """The number of its runs."""


def round_mixture(weights: Mapping[str, float]) -> dict[str, float]:
    """Round weights to three digits so that they sum to exactly 1; leave out weights of 0."""
    units = 1000
    scaled = np.array(list(weights.values()), float) / math.fsum(weights.values()) * units
    whole = np.floor(scaled).astype(int)
    order = np.argsort(whole - scaled, kind="stable")
    whole[order[: units - int(whole.sum())]] += 1
    return {name: int(count) / units for name, count in zip(weights, whole, strict=True) if count}


def mixture_line(weights: Mapping[str, float]) -> str:
    """Return a mixture as options and run tables take it: `en-de:0.412,en-zh:0.588`."""
    return ",".join(f"{name}:{weight:g}" for name, weight in round_mixture(weights).items())


def mixture_toml(weights: Mapping[str, float]) -> str:
    """Return a mixture as a study takes it: `{ en-de = 0.412, en-zh = 0.588 }`."""
    return _inline(round_mixture(weights))


def studies_of(
    rows: pd.DataFrame, runs: Sequence[CandidateRun], *, notes: Sequence[str] = (), base: Path | None = None
) -> tuple[Study, ...]:
    """Return the studies that train exactly some runs, each study a grid of sizes × mixtures.

    The runs get seeds that the table does not have, so that no run counts as trained. Sizes have the names of
    the table's runs, or `n9456` after their parameters. Without `base` they are empty, and need the shapes of
    the models.

    Args:
        rows: The rows of the table that the runs extend.
        runs: Sizes, mixtures and training lengths; a run that occurs twice gets two seeds.
        notes: Lines of comment at the top.
        base: The study file of the table's runs, whose other sections and shapes of sizes are copied.

    Raises:
        TableError: If `base` cannot be read.
    """
    study = {} if base is None else read_study(base)
    known = sizes_of(rows, study)
    sizes = {run[::2]: _size(rows, run, known) for run in runs}
    grids = _grids([(sizes[run[::2]][0], mixture_toml(run.mixture)) for run in runs])
    seed = int(np.nanmax(rows["seed"].to_numpy(float), initial=0))
    heading = "\n".join(f"# {line}" for line in notes)
    rest = f'name = "{study.get("name", "next-runs")}"' if base is None else _without_sweep(base)
    shapes = dict(sizes.values())
    return tuple(
        _study(heading, rest, {name: shapes[name] for name in names}, mixtures, seed, times)
        for names, mixtures, times in grids
    )


def _study(
    heading: str, rest: str, shapes: Mapping[str, str], mixtures: Sequence[str], seed: int, times: int
) -> Study:
    lines = [*([heading] if heading else []), rest.strip(), "", "[sweep]"]
    lines += [f"seeds = [{', '.join(str(seed + number) for number in range(1, times + 1))}]", ""]
    lines += ["[sweep.sizes]", *(f"{_key(name)} = {shape}" for name, shape in shapes.items()), ""]
    lines += ["[sweep.fit]", f"sizes = [{', '.join(_value(name) for name in shapes)}]"]
    lines += ["mixtures = [", *(f"    {mixture}," for mixture in mixtures), "]"]
    return Study(text="\n".join(lines) + "\n", runs=len(shapes) * len(mixtures) * times)


def _grids(cells: Sequence[tuple[str, str]]) -> list[tuple[list[str], list[str], int]]:
    """Return grids (sizes, mixtures, seeds) that hold each cell as often as it occurs."""
    counts: dict[str, dict[str, int]] = {}
    for size, mixture in cells:
        row = counts.setdefault(size, {})
        row[mixture] = row.get(mixture, 0) + 1
    grids: dict[tuple[frozenset[str], int], list[str]] = {}
    for size, row in counts.items():
        for times in sorted(set(row.values())):
            mixtures = frozenset(mixture for mixture, count in row.items() if count == times)
            grids.setdefault((mixtures, times), []).append(size)
    return [(sizes, sorted(mixtures), times) for (mixtures, times), sizes in grids.items()]


def _size(rows: pd.DataFrame, run: CandidateRun, known: Sequence[Shape]) -> tuple[str, str]:
    """Return the name of a run's size in a study, and its settings as TOML."""
    same = (size for size in known if run.size and math.isclose(size.num_params, run.size, rel_tol=1e-3))
    shape = next(same, None)
    name = shape.name if shape else "model" if run.size is None else f"n{run.size:.0f}"
    settings: dict[str, Any] = dict(shape.settings) if shape else {}
    todo = "" if settings else "  # as in your study" if shape else "  # give d_model, d_ff, …"
    if run.size is not None:
        todo = f"  # {run.size:,.0f} parameters{todo.replace('  # ', ': ')}"
    if run.tokens is not None:
        steps = _steps(rows, run.tokens)
        name = f"{name}-{f's{steps}' if steps else f't{run.tokens:.3g}'.replace('+', '')}"
        settings |= {"steps": steps} if steps else {}
        todo += "" if steps else f"; train on {run.tokens:,.0f} tokens"
    return name, (_inline(settings) if settings else "{}") + todo


def _steps(rows: pd.DataFrame, tokens: float) -> int:
    """Return the steps of a number of tokens, by the table's steps and tokens; 0 if it lacks them."""
    known = rows.dropna(subset=["step", "tokens"]) if "step" in rows else rows.iloc[:0]
    if known.empty:
        return 0
    nearest = known.loc[(np.log(known["tokens"] / tokens)).abs().idxmin()]
    ratio = tokens / float(nearest["tokens"])
    return round(float(nearest["step"]) * (ratio if abs(np.log(ratio)) > np.log(NEAR) else 1.0))


def _without_sweep(path: Path) -> str:
    lines, inside = [], False
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        header = _HEADER.fullmatch(line)
        if header:
            inside = header[1].split(".")[0] == "sweep"
        if not inside:
            lines.append(line)
    return "\n".join(lines)


def _inline(table: Mapping[str, Any]) -> str:
    return f"{{ {', '.join(f'{_key(name)} = {_value(value)}' for name, value in table.items())} }}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return _inline(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    return repr(value)


def runs_of(design_runs: pd.DataFrame) -> list[CandidateRun]:
    """Return the proposed runs of a design as candidates."""
    return [
        CandidateRun(row.get("size"), _weights(row["mixture"]), row.get("tokens"))
        for row in design_runs.to_dict("records")
    ]


def _weights(text: str) -> dict[str, float]:
    """Return the weights of a proposed mixture, which are rounded and need not sum to 1."""
    items = (item.rsplit(":", 1) for item in text.split(","))
    return {name: float(weight) for name, weight in items}
