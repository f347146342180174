"""True regret of the advice of `recommend` on simulated tables, beside rules that cost nothing and a grid.

Claim: the advice is nearly as good as the best mixture, no worse than equal weights, and its stated expected
regret is about what is realised. No peer: the truth is known. Cited in docs/laws/uncertainty.md.

Tables have 2, 3 or 7 tasks, 3 to 8 sizes and errors of .3 to 3% that correlate at .5 within a run. A task's
loss is L∞ + A (N / 1e6)^-α q^-γ of its exposure q = p_i + Σ_j h_ij p_j; partners help where tasks are more
than two. The mixture moves β (γ), α (by log q), L∞ (by q^-.3 - 1) or all three.

    python -m benchmarks.laws.advice --out benchmarks/results/laws/advice.json

Tables that stand in the file are not simulated again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from mnmt_laws import Recommendation, recommend
from mnmt_laws.answers.mixtures.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array

KINDS = ("β", "α", "L∞", "all")
TASKS = (2, 3, 2, 3, 7)
MIXTURES = {2: (5, 9), 3: (8, 16), 7: (16, 24)}
REFERENCE = 1e6  # N at which A is the reducible loss
PIVOT = 1e3  # N at which an exponent that varies moves nothing
LEAST = 0.02  # weight of a mixture that is trained
NEAR = 0.002  # nats, within which a rule is as good as the best mixture


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The laws of some tasks; each field is (tasks,) but `help`, (tasks, tasks)."""

    limit: Array
    scale: Array
    alpha: Array
    gamma: Array
    bend: Array
    rise: Array
    help: Array

    def losses(self, points: Array, size: float) -> Array:
        """Return (tasks, n) losses, nats per token, of (n, tasks) mixtures."""
        exposure = points @ self.help.T
        alpha = self.alpha + self.bend * np.log(exposure)
        power = (REFERENCE / PIVOT) ** self.alpha * (size / PIVOT) ** -alpha * exposure**-self.gamma
        return np.asarray((self.limit + self.rise * (exposure**-0.3 - 1) + self.scale * power).T)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A truth, what is trained, and what is wanted."""

    kind: str
    truth: Truth
    sizes: Array
    mixtures: Array
    noise: float
    importance: Array
    target: float


def main(*, tables: int = 200, first: int = 0, worst: int = 8, out: Out = None) -> None:
    """Print the regret of the advice and of its rivals, by kind of table.

    Args:
        tables: Tables in all, with those in the file.
        first: The first of them.
        worst: How many of the worst to print.
        out: JSON file for the figures.
    """
    rows: list[Figures] = json.loads(out.read_text(encoding="utf-8"))["rows"] if out and out.exists() else []
    for seed in sorted(set(range(first, tables)) - {row["table"] for row in rows}):
        rows.append(row := {"table": seed} | judge(problem_of(seed), seed))
        print(row, flush=True)
        figures = {"summary": summarise(pd.DataFrame(rows)), "rows": rows}
        write_report(out, "regret of advice", figures, provenance("mnmt-laws", "numpy", "scipy"))
    table = pd.DataFrame(rows)
    print_table(summarise(table))
    print_table(table.sort_values("advice").tail(worst).to_dict("records"))


def problem_of(seed: int) -> Problem:
    """Return a problem; kinds, numbers of tasks and importance take turns, and the rest is drawn."""
    rng = np.random.default_rng(seed)
    kind, count, equal = KINDS[seed % 4], TASKS[seed // 4 % 5], seed // 20 % 2 == 0
    factors = np.ones(count) if equal else np.exp(rng.uniform(0, np.log(4), count))
    smallest = np.exp(rng.uniform(np.log(1e5), np.log(3e6)))
    sizes = np.geomspace(smallest, smallest * rng.uniform(12, 32), rng.integers(3, 9))
    return Problem(
        kind=kind, truth=truth_of(kind, count, rng), sizes=sizes, mixtures=mixtures_of(count, rng),
        noise=float(np.exp(rng.uniform(np.log(0.003), np.log(0.03)))), importance=factors / factors.sum(),
        target=float(sizes[-1] * (4 if seed % 3 == 0 else 2)),
    )  # fmt: skip


def truth_of(kind: str, count: int, rng: np.random.Generator) -> Truth:
    """Return laws of which the mixture moves one parameter, or all."""
    moves = {name: float(kind in (name, "all")) for name in KINDS}
    partners = rng.uniform(0.0, 0.15, (count, count)) * (count > 2)
    np.fill_diagonal(partners, 1.0)
    return Truth(
        limit=rng.uniform(0.8, 1.6, count),
        scale=rng.uniform(0.6, 1.6, count),
        alpha=rng.uniform(0.2, 0.4, count),
        gamma=rng.uniform(0.1, 0.4, count) * moves["β"],
        bend=rng.uniform(0.01, 0.03, count) * moves["α"],
        rise=rng.uniform(0.1, 0.4, count) * moves["L∞"],
        help=partners,
    )


def mixtures_of(count: int, rng: np.random.Generator) -> Array:
    """Return (mixtures, tasks) weights that are trained: evenly spaced for two tasks, else drawn."""
    number = int(rng.integers(*MIXTURES[count], endpoint=True))
    if count == 2:
        first = np.linspace(0.1, 0.9, number)
        return np.stack([first, 1 - first], axis=1)
    return LEAST + (1 - count * LEAST) * rng.dirichlet(np.ones(count), number)


def table_of(problem: Problem, seed: int) -> pd.DataFrame:
    """Return the run table."""
    rng, rows = np.random.default_rng([seed, 1]), []
    tasks = names_of(problem)
    for size in problem.sizes:
        losses = problem.truth.losses(problem.mixtures, size).T
        for number, (weights, values) in enumerate(zip(problem.mixtures, losses, strict=True)):
            errors = np.sqrt(0.5) * (rng.standard_normal() + rng.standard_normal(len(tasks)))
            mixture = ",".join(f"{task}:{weight:.12g}" for task, weight in zip(tasks, weights, strict=True))
            rows += [
                {"run": f"{size:.0f}-{number}", "size": size, "task": task, "weight": float(f"{weight:.12g}"),
                 "mixture": mixture, "metric": "loss", "value": value * np.exp(problem.noise * error)}
                for task, weight, value, error in zip(tasks, weights, values, errors, strict=True)
            ]  # fmt: skip
    return pd.DataFrame(rows)


def names_of(problem: Problem) -> list[str]:
    """Return the names of its tasks."""
    return [f"en-x{number}" for number in range(len(problem.importance))]


def judge(problem: Problem, seed: int) -> Figures:
    """Return what was lost, in nats per token, by the advice and its rivals, and what the advice stated."""
    table, tasks, start = table_of(problem, seed), names_of(problem), time.perf_counter()
    advice = recommend(
        table, size=problem.target, preference=dict(zip(tasks, problem.importance.tolist(), strict=True))
    )
    seconds = time.perf_counter() - start
    regret = regret_of(problem, np.array([advice.weights[task] for task in tasks]))
    count = len(tasks)
    return {
        "kind": problem.kind, "tasks": count, "equal importance": bool(np.ptp(problem.importance) == 0),
        "sizes": len(problem.sizes), "mixtures": len(problem.mixtures), "noise": round(problem.noise, 4),
        "times": round(problem.target / problem.sizes[-1]), "advice": regret, "stated": advice.regret,
        "equal weights": regret_of(problem, np.full(count, 1 / count)), "stated of equal": stated_of(advice),
        "p = λ": regret_of(problem, problem.importance), "grid": regret_of(problem, grid(problem, table)),
        "rule": advice.rule, "best form": advice.forecast.table["law"][0], "seconds": round(seconds, 2),
    }  # fmt: skip


def regret_of(problem: Problem, weights: Array) -> float:
    """Return what a mixture costs more than the best, in nats per token."""

    def cost(points: Array) -> Array:
        losses = problem.truth.losses(points.reshape(-1, points.shape[-1]), problem.target)
        return np.asarray((problem.importance @ losses).reshape(points.shape[:-1]))

    _, least = minimise_on_simplex(cost, num_tasks=len(weights), count=1)
    return float(cost(weights[None])[0] - least[0])


def stated_of(advice: Recommendation) -> float:
    """Return the expected regret of equal weights, by the advice's draws."""
    return advice.regret + sum(rival.loss for rival in advice.rivals if rival.name == "equal weights")


def grid(problem: Problem, table: pd.DataFrame) -> Array:
    """Return the best mixture that was trained at the largest size, by its measured losses."""
    largest = table[table["size"].eq(problem.sizes[-1])]
    losses = largest["value"].to_numpy().reshape(len(problem.mixtures), -1)
    return np.asarray(problem.mixtures[(losses @ problem.importance).argmin()])


def summarise(table: pd.DataFrame) -> list[Figures]:
    """Return a row for all tables and for each kind, number of tasks, of sizes, and importance."""
    parts = {"all": table} | {
        f"{name}: {value}": rows
        for name in ("kind", "tasks", "sizes", "equal importance", "times")
        for value, rows in table.groupby(name, sort=False)
    }
    return [{"tables": name, "count": len(rows)} | _summary(rows) for name, rows in parts.items()]


def _summary(rows: pd.DataFrame) -> Figures:
    """Return mean and worst regrets in thousandths of a nat, what was stated, and how often a rule stood."""
    methods = ("advice", "equal weights", "p = λ", "grid")
    rule = rows[rows["rule"].ne("")]
    return {
        **{
            f"{name}, mean (worst)": f"{1e3 * rows[name].mean():.1f} ({1e3 * rows[name].max():.1f})"
            for name in methods
        },
        "stated": f"{1e3 * rows['stated'].mean():.1f}",
        "realised above 5 times stated": int((rows["advice"] > 5 * rows["stated"]).sum()),
        "stated of equal": f"{1e3 * rows['stated of equal'].mean():.1f}",
        "a rule taken": f"{len(rule) / len(rows):.0%}",
        "of these near": f"{(rule['advice'] <= NEAR).mean():.0%}" if len(rule) else "–",
        "seconds": round(float(rows["seconds"].mean()), 1),
    }


if __name__ == "__main__":
    run(main, smoke={"tables": 1})
