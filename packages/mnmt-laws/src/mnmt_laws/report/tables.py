"""The report's tables and headline numbers, formatted to read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mnmt_laws.figures.style import format_size
from mnmt_laws.mixture import format_mixture
from mnmt_laws.parameters import parameter_frame
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.document import fraction_frame
from mnmt_laws.report.findings import format_duration
from mnmt_laws.results import LawFit

_SYMBOLS = {"alpha": "α", "beta": "β", "l_inf": "L∞", "c1": "c₁", "c2": "c₂", "c3": "c₃"}
_UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One headline number."""

    label: str
    value: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A titled table of text."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False
    """Whether the page shows it only on demand."""

    prose: bool = False
    """Whether its cells hold sentences."""


def headline_tiles(analysis: Analysis) -> tuple[Tile, ...]:
    """Exponents, limits and the held-out error."""
    tiles = []
    parameters, std = analysis.joint.parameters, analysis.joint.std
    for task in analysis.tasks:
        alpha, spread = float(parameters.alpha.sel(task=task)), float(std.alpha.sel(task=task))
        tiles.append(Tile(label=f"exponent α, {task}", value=f"{alpha:.3f}", note=f"± {_number(spread, 2)}"))
    for task in analysis.tasks:
        limit, true = float(parameters.l_inf.sel(task=task)), analysis.known_limit(task)
        note = (
            analysis.observations.unit
            if math.isnan(true)
            else f"true {true:.3f} {analysis.observations.unit}"
        )
        tiles.append(Tile(label=f"limit L∞, {task}", value=f"{limit:.3f}", note=note))
    errors = analysis.held_out.errors("capacity")
    if not errors.empty:
        note = f"median of {len(errors)}; at most {errors.max():.1%}"
        tiles.append(Tile(label="error on held-out runs", value=f"{errors.median():.1%}", note=note))
    return tuple(tiles)


def report_tables(analysis: Analysis) -> tuple[Table, ...]:
    """Every table that has rows."""
    tables = [_claims(analysis), _limits(analysis), _held_out(analysis), _fractions(analysis)]
    tables += [_fit(analysis.joint), _fit(analysis.capacity), _fit(analysis.per_weighting), _runs(analysis)]
    return tuple(table for table in tables if table.rows)


def _claims(analysis: Analysis) -> Table:
    verdict = {True: "holds", False: "does not hold", None: "cannot tell"}
    return Table(
        title="The paper's claims on this table",
        note="Fernandes et al. 2023, sections 3.2 and 3.3.",
        header=("claim", "task", "verdict", "finding"),
        rows=tuple(
            (claim.claim, claim.task, verdict[claim.holds], claim.finding) for claim in analysis.claims
        ),
        prose=True,
    )


def _limits(analysis: Analysis) -> Table:
    rows = (
        (
            row["task"],
            _number(row["true"], 4),
            _number(row["fitted"], 4),
            _number(row["std"], 2),
            f"{_number(row['lower'], 4)} to {_number(row['upper'], 4)}",
        )
        for row in analysis.irreducible.to_dict("records")
    )
    return Table(
        title="Irreducible loss, true and fitted",
        note="The joint law's L∞ beside the entropy the data are known to have, in nats per token.",
        header=("task", "true", "fitted", "std", "95% interval"),
        rows=tuple(rows),
    )


def _held_out(analysis: Analysis) -> Table:
    rows = []
    for row in analysis.held_out.rows.to_dict("records"):
        new = " and ".join(name for name in ("weight", "size") if row[f"new_{name}"]) or _UNKNOWN
        errors = (
            f"{row[f'{law}_error']:+.1%}" if math.isfinite(row[law]) else _UNKNOWN
            for law in ("capacity", "joint")
        )
        numbers = (_number(row[key], 4) for key in ("observed", "capacity"))
        rows.append((row["task"], format_size(row["size"]), f"{row['weight']:g}", new, *numbers, *errors))
    return Table(
        title="Held-out models",
        note="Predicted by laws fitted without them. The joint law speaks only of weights it has seen.",
        header=("task", "N", "p", "unseen", "measured", "predicted", "capacity law error", "joint law error"),
        rows=tuple(rows),
        folded=True,
    )


def _fractions(analysis: Analysis) -> Table:
    rows = (
        (
            row["task"],
            f"{row['weight']:g}",
            _number(row["value"], 3),
            f"{_number(row['lower'], 3)} to {_number(row['upper'], 3)}",
            f"{row['value'] / row['weight']:.2f}×",
        )
        for row in fraction_frame(analysis).to_dict("records")
    )
    return Table(
        title="Effective fractions",
        note="f(p) = (β₁ / β_p)^(1/α) of the joint law, and how many times its share the task gets.",
        header=("task", "p", "f(p)", "95% interval", "f(p) / p"),
        rows=tuple(rows),
        folded=True,
    )


def _fit(fitted: LawFit) -> Table:
    rows = (
        (
            row["task"],
            "all" if math.isnan(row["weight"]) else f"{row['weight']:g}",
            _SYMBOLS[row["name"]],
            _number(row["value"], 5),
            _number(row["std"], 2),
        )
        for row in parameter_frame(fitted).to_dict("records")
    )
    return Table(
        title=f"The {fitted.law.name} law",
        note=f"{fitted.law.formula} ({fitted.law.equation}); N in parameters; {fitted.objective}.",
        header=("task", "p", "parameter", "value", "std"),
        rows=tuple(rows),
        folded=True,
    )


def _runs(analysis: Analysis) -> Table:
    rows = (
        (
            record.run,
            record.status if record.error is None else f"{record.status}: {record.error}",
            record.role,
            format_size(record.size),
            format_mixture(record.mixture).replace(",", " "),
            _UNKNOWN if record.wall_seconds is None else format_duration(record.wall_seconds),
        )
        for record in analysis.records
    )
    return Table(
        title="Runs",
        note=_total(analysis),
        header=("run", "status", "role", "N", "mixture", "wall time"),
        rows=tuple(rows),
        folded=True,
    )


def _total(analysis: Analysis) -> str:
    statuses = [record.status for record in analysis.records]
    counts = ", ".join(f"{statuses.count(status)} {status}" for status in _ordered(statuses))
    known = math.isfinite(analysis.wall_seconds)
    return f"{counts}; {format_duration(analysis.wall_seconds)} altogether." if known else f"{counts}."


def _ordered(statuses: Iterable[str]) -> list[str]:
    return sorted(set(statuses), key=("finished", "failed", "running").index)


def _number(value: float, digits: int) -> str:
    return _UNKNOWN if not math.isfinite(value) else f"{value:#.{digits}g}".rstrip(".")
