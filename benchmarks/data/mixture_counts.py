"""Realised against asked weights: are the counts of tasks multinomial, and is a small weight met exactly?

Over many seeds, the counts of the first draws are compared with the weights by a chi-square test; if the
draws are as they should be, the p-values are uniform (Kolmogorov-Smirnov). The bias of the weight 0.001 is
measured over 10^9 draws a seed, whose counts `TaskSampler.before` gives without drawing them; that these
counts are those of the draws is checked on explicit draws, which also show how the counts of short and long
stretches scatter: as much as independent draws' do, the ratio of variances is 1.

    pip install mnmt-data scipy
    python -m benchmarks.data.mixture_counts --out benchmarks/results/data/mixture_counts.json
"""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, kstest

from mnmt_data.stream import Mixture, TaskSampler

WEIGHTS = {"en-de": 0.5, "en-fr": 0.25, "en-zh": 0.15, "en-ru": 0.08, "en-is": 0.019, "en-gu": 0.001}
SMALLEST = 5
STRETCHES = (16, 256, 4096, 65_536)


def main(
    seeds: int = 10_000,
    draws: int = 1_000_003,
    many_draws: int = 10**9,
    explicit: int = 10**7,
    out: Path | None = None,
) -> None:
    """Print what was found.

    Args:
        seeds: Streams looked at.
        draws: First draws of each that the chi-square test counts.
        many_draws: First draws of each over which the smallest weight's bias is measured.
        explicit: Draws that are made one by one and compared with their counts.
        out: File for the figures.
    """
    report = {
        "what": "realised against asked weights",
        "weights": WEIGHTS,
        "chi_square": chi_square(seeds, draws),
        "smallest_weight": smallest_weight(seeds, many_draws),
        "explicit_draws": explicit_draws(explicit, far=many_draws),
    }
    print(json.dumps(report, indent=1))
    if out:
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def drawn(seed: int) -> TaskSampler:
    """The draws of a seed."""
    return TaskSampler(mixture=Mixture(WEIGHTS), seed=seed, labels=("tasks", 0))


def weights() -> NDArray[np.float64]:
    """(tasks,) the asked weights."""
    return np.array(list(WEIGHTS.values()))


def chi_square(seeds: int, draws: int) -> dict[str, Any]:
    """The p-values of all seeds' counts, and how uniform they are."""
    counts = np.array([drawn(seed).before(draws) for seed in range(seeds)])
    expected = draws * weights()
    statistics = ((counts - expected) ** 2 / expected).sum(axis=1)
    p_values = chi2.sf(statistics, df=len(WEIGHTS) - 1)
    test = kstest(p_values, "uniform")
    return {
        "seeds": seeds,
        "draws": draws,
        "mean_p": round(float(p_values.mean()), 4),
        "share_below_0.05": round(float((p_values < 0.05).mean()), 4),
        "share_below_0.01": round(float((p_values < 0.01).mean()), 4),
        "kolmogorov_smirnov_statistic": round(float(test.statistic), 4),
        "kolmogorov_smirnov_p": round(float(test.pvalue), 4),
    }


def smallest_weight(seeds: int, draws: int) -> dict[str, Any]:
    """How far the realised smallest weight is from the asked one, over all seeds together."""
    weight = float(weights()[SMALLEST])
    counts = np.array([drawn(seed).before(draws)[SMALLEST] for seed in range(seeds)])
    expected, deviation = draws * weight, np.sqrt(draws * weight * (1 - weight))
    scores = (counts - expected) / deviation
    return {
        "asked": weight,
        "draws_a_seed": draws,
        "seeds": seeds,
        "relative_error_of_one_seed": float(abs(counts / expected - 1).mean()),
        "relative_bias": float(counts.mean() / expected - 1),
        "standard_error_of_it": float(deviation / expected / np.sqrt(seeds)),
        "bias_in_standard_errors": round(float(scores.mean() * np.sqrt(seeds)), 2),
        "variance_over_binomial": round(float(scores.var(ddof=1)), 3),
        "standard_error_of_variance": round(float(np.sqrt(2 / (seeds - 1))), 3),
    }


def explicit_draws(draws: int, *, far: int) -> dict[str, Any]:
    """Whether draws made one by one have the counts that were told, and how their counts scatter."""
    one = drawn(1)
    tasks = one.tasks(0, draws)
    span = min(draws, 100_000)
    told = one.before(far + span) - one.before(far)
    return {
        "draws": draws,
        "counts_equal_those_told": bool(np.array_equal(counted(tasks), one.before(draws))),
        "counts_after_the_many_equal": bool(np.array_equal(counted(one.tasks(far, span)), told)),
        "realised": dict(zip(WEIGHTS, (counted(tasks) / draws).round(7).tolist(), strict=True)),
        "variance_over_binomial_of_stretches": {
            size: scatter(tasks, size) for size in STRETCHES if draws >= 100 * size
        },
    }


def counted(tasks: NDArray[np.int64]) -> NDArray[np.int64]:
    """(tasks,) how often each came."""
    return np.bincount(tasks, minlength=len(WEIGHTS))


def scatter(tasks: NDArray[np.int64], size: int) -> dict[str, float]:
    """Variance of the largest task's count in stretches of a size, over that of independent draws."""
    weight = float(weights()[0])
    stretches = tasks[: len(tasks) // size * size].reshape(-1, size)
    counts = (stretches == 0).sum(axis=1)
    ratio = float(((counts - size * weight) ** 2).mean() / (size * weight * (1 - weight)))
    return {"ratio": round(ratio, 4), "standard_error": round(float(np.sqrt(2 / len(counts))), 4)}


def described() -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "machine": f"{platform.machine()}, 2 cores",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("mnmt-data", "numpy", "scipy")},
    }


if __name__ == "__main__":
    cyclopts.run(main)
