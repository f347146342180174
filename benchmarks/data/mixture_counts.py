"""The counts of tasks in a stream, against the weights of the mixture.

Claim: the counts are multinomial, and a small weight is met exactly. No peer.

Over many seeds, a chi-square test compares the counts of the first draws with the weights. If the draws are
correct, the p-values are uniform (Kolmogorov-Smirnov). The bias of the weight 0.001 is measured over 10^9
draws a seed, whose counts `TaskSampler.before` gives without drawing them; that these counts are those of the
draws is checked on explicit draws, which also show how the counts of short and long stretches scatter: as
much as independent draws' do, the ratio of variances is 1.

    pip install mnmt-data scipy
    python -m benchmarks.data.mixture_counts --out benchmarks/results/data/mixture_counts.json
"""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, kstest

from benchmarks.measurement import Figures, Out, provenance, run, write_report
from mnmt_data.stream import Mixture, TaskSampler

WEIGHTS = {"en-de": 0.5, "en-fr": 0.25, "en-zh": 0.15, "en-ru": 0.08, "en-is": 0.019, "en-gu": 0.001}
SMALLEST = 5
STRETCHES = (16, 256, 4096, 65_536)


def main(
    *,
    seeds: int = 10_000,
    draws: int = 1_000_003,
    many_draws: int = 10**9,
    explicit: int = 10**7,
    out: Out = None,
) -> None:
    """Print the figures of all tests.

    Args:
        seeds: Number of streams.
        draws: First draws of each stream that the chi-square test counts.
        many_draws: First draws of each stream over which the bias of the smallest weight is measured.
        explicit: Draws that are made one by one and compared with their counts.
        out: JSON file for the figures.
    """
    figures = {
        "weights": WEIGHTS,
        "chi_square": chi_square(seeds, draws),
        "smallest_weight": smallest_weight(seeds, many_draws),
        "explicit_draws": explicit_draws(explicit, far=many_draws),
    }
    print(json.dumps(figures, indent=1))
    write_report(
        out, "realised against requested weights", figures, provenance("mnmt-data", "numpy", "scipy")
    )


def sampler(seed: int) -> TaskSampler:
    """Return the task sampler of a seed."""
    return TaskSampler(mixture=Mixture(WEIGHTS), seed=seed, labels=("tasks", 0))


def weights() -> NDArray[np.float64]:
    """Return the weights of the mixture, (tasks,)."""
    return np.array(list(WEIGHTS.values()))


def chi_square(seeds: int, draws: int) -> Figures:
    """Return the p-values of all seeds' counts, and how uniform they are."""
    counts = np.array([sampler(seed).before(draws) for seed in range(seeds)])
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


def smallest_weight(seeds: int, draws: int) -> Figures:
    """Return how far the realised smallest weight is from the requested one, over all seeds together."""
    weight = float(weights()[SMALLEST])
    counts = np.array([sampler(seed).before(draws)[SMALLEST] for seed in range(seeds)])
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


def explicit_draws(draws: int, *, far: int) -> Figures:
    """Check that draws made one by one have the computed counts; return how their counts scatter."""
    one = sampler(1)
    tasks = one.tasks(0, draws)
    span = min(draws, 100_000)
    expected = one.before(far + span) - one.before(far)
    return {
        "draws": draws,
        "counts_equal_those_told": bool(np.array_equal(count_tasks(tasks), one.before(draws))),
        "counts_after_the_many_equal": bool(np.array_equal(count_tasks(one.tasks(far, span)), expected)),
        "realised": dict(zip(WEIGHTS, (count_tasks(tasks) / draws).round(7).tolist(), strict=True)),
        "variance_over_binomial_of_stretches": {
            size: scatter(tasks, size) for size in STRETCHES if draws >= 100 * size
        },
    }


def count_tasks(tasks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often each task came, (tasks,)."""
    return np.bincount(tasks, minlength=len(WEIGHTS))


def scatter(tasks: NDArray[np.int64], size: int) -> dict[str, float]:
    """Return the variance of the largest task's count in stretches, over that of independent draws."""
    weight = float(weights()[0])
    stretches = tasks[: len(tasks) // size * size].reshape(-1, size)
    counts = (stretches == 0).sum(axis=1)
    ratio = float(((counts - size * weight) ** 2).mean() / (size * weight * (1 - weight)))
    return {"ratio": round(ratio, 4), "standard_error": round(float(np.sqrt(2 / len(counts))), 4)}


if __name__ == "__main__":
    run(main, smoke={"seeds": 50, "draws": 10_000, "many_draws": 10**6, "explicit": 20_000})
