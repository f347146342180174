r"""Calibration of a comparison of many systems: p-values, corrected stars, and intervals of differences.

Claims, of what `mnmt-eval compare` prints: between equally good systems p-values are uniform; Holm's
correction keeps the chance of any star among all pairs at most at 5%; and 95% of the intervals of a
difference hold the true one. Cited in docs/eval/metrics.md.

Systems replace and drop words of a text, of each sentence another share. *Equal* systems have exchanged
their outputs of every sentence at random, so all are equally good. The *true* difference is that on all
sentences of the text, from which each trial draws some. Without a file, the text is of random words.

    python -m benchmarks.eval.calibration --text train.en-de.de --target de --sentences 500 \
        --population 10000 --trials 500 --out benchmarks/results/eval/calibration.json
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, kstest

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_eval.compare import CompareConfig
from mnmt_eval.compare.measurements import Measurement
from mnmt_eval.compare.pairs import PairTests
from mnmt_eval.metrics import Metric, metric
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.text import read_lines

ERROR_RATES = (0.20, 0.22, 0.24, 0.26, 0.28)
"""The mean share of words that each system replaces or drops."""
LEVEL = 0.05


def main(
    *,
    text: Path | None = None,
    target: str = "en",
    metrics: Names = ("bleu", "chrf", "ter"),
    population: int = 20_000,
    sentences: int = 500,
    trials: int = 1000,
    samples: int = 1000,
    permutations: int = 1000,
    seed: int = 1,
    out: Out = None,
) -> None:
    """Print a table.

    Args:
        text: A file with a reference a line; random words by default.
        target: Its language.
        metrics: Metrics whose differences are tested.
        population: Sentences of the whole text, from its start.
        sentences: Sentences of each trial.
        trials: Number of trials.
        samples: Resamples of an interval.
        permutations: Exchanges of a test.
        seed: Seed of systems and trials.
        out: JSON file for the figures.
    """
    rng = np.random.default_rng(seed)
    references = random_lines(population, rng) if text is None else read_lines(text)[:population]
    outputs = [perturb(references, rate, rng) for rate in ERROR_RATES]
    figures: Figures = {
        "population": len(references),
        "sentences": sentences,
        "systems": len(outputs),
        "trials": trials,
        "samples": samples,
        "permutations": permutations,
        "metrics": {},
    }
    config = CompareConfig(samples=samples, permutations=permutations)
    for name in metrics:
        scorer = metric(name, target=target)
        statistics = np.stack([scorer.sentence_statistics(lines, [references]) for lines in outputs])
        draws = [rng.choice(len(references), sentences, replace=False) for _ in range(trials)]
        figures["metrics"][name] = {
            **equal_systems(scorer, statistics, draws, config, rng),
            **coverage(scorer, statistics[[0, -1]], draws, config),
        }
        print_table(
            [{"metric": name} | {key: format_cell(value) for key, value in figures["metrics"][name].items()}]
        )
    write_report(out, "calibration of comparisons", figures, provenance("mnmt-eval", "sacrebleu", "numpy"))


def random_lines(count: int, rng: np.random.Generator) -> list[str]:
    """Return lines of random words."""
    words = np.array([f"word{number}" for number in range(1000)])
    return [" ".join(rng.choice(words, rng.integers(5, 30))) for _ in range(count)]


def perturb(lines: Sequence[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Replace and drop words, of each line another share whose mean is `rate`."""
    words = np.array([word for line in lines[:2000] for word in line.split()])
    outputs = []
    for line in lines:
        original = np.array(line.split())
        is_wrong = rng.random(len(original)) < rng.beta(2 * rate, 2 * (1 - rate))
        replaced = np.where(is_wrong, rng.choice(words, len(original)), original)
        outputs.append(" ".join(replaced[~is_wrong | (rng.random(len(original)) < 0.7)]))
    return outputs


def equal_systems(
    scorer: Metric,
    statistics: Floats,
    trials: Sequence[np.ndarray],
    config: CompareConfig,
    rng: np.random.Generator,
) -> Figures:
    """Return the shares of trials in which tests of equal systems err."""
    p_values, errors, corrected = [], 0, 0
    for rows in trials:
        order = rng.permuted(np.tile(np.arange(len(statistics)), (len(rows), 1)), axis=1)
        equal = statistics[order.T, rows]
        pairs = tests(scorer, equal, config).all_pairs()
        p_values.append(pairs[0].result.test.p_value)
        errors += any(pair.result.test.p_value < LEVEL for pair in pairs)
        corrected += any(pair.result.p_value < LEVEL for pair in pairs)
    return {
        "one pair, p < .05": share(sum(p < LEVEL for p in p_values), len(trials)),
        "KS test of uniform p": round(float(kstest(p_values, "uniform").pvalue), 4),
        "any of all pairs, p < .05": share(errors, len(trials)),
        "any, corrected": share(corrected, len(trials)),
    }


def coverage(
    scorer: Metric, statistics: Floats, trials: Sequence[np.ndarray], config: CompareConfig
) -> Figures:
    """Return the share of trials whose interval holds the difference of two systems on all sentences."""
    one, other = (scorer.corpus(each).value for each in statistics)
    covered = 0
    for rows in trials:
        _, interval = tests(scorer, statistics[:, rows], config).test("0", "1")
        covered += interval.lower <= other - one <= interval.upper
    return {"95% intervals with the true difference": share(covered, len(trials))}


def tests(scorer: Metric, statistics: Floats, config: CompareConfig) -> PairTests:
    """Return the tests that a comparison of these systems makes."""
    systems = {str(place): each for place, each in enumerate(statistics)}
    return PairTests(Measurement(metric=scorer, systems=systems), config)


def share(count: int, trials: int) -> Figures:
    """Return a share with its 95% interval."""
    interval = binomtest(count, trials).proportion_ci()
    return {"share": round(count / trials, 4), "interval": [round(interval.low, 4), round(interval.high, 4)]}


def format_cell(value: Figures | float) -> str:
    """Format a share with its interval in percent, or a number."""
    if not isinstance(value, dict):
        return str(value)
    low, high = (f"{100 * end:.1f}" for end in value["interval"])
    return f"{100 * value['share']:.1f}% [{low}, {high}]"


if __name__ == "__main__":
    smoke = {"population": 60, "sentences": 30, "trials": 4, "samples": 20, "permutations": 20}
    run(main, smoke=smoke | {"metrics": ("bleu",)})
