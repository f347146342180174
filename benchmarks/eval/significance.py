r"""False positives of the paired tests, on two systems that are equally good by construction.

Claim: the p-values of both tests are correct. The tests are those of sacreBLEU, `paired_bootstrap`
(`--paired-bs`) and `paired_permutation` (`--paired-ar`). Cited in docs/eval/metrics.md.

The outputs of two systems are exchanged at random for every sentence, so that neither is better. A test with
correct p-values then reports p < 0.05 in 5 of 100 trials. Printed are the shares of trials below 0.05 and
0.01, with their 95% intervals. Without files, two systems replace random words of random sentences.

    python -m benchmarks.eval.significance --systems ONE.txt TWO.txt --reference REF.txt --target de \
        --out benchmarks/results/eval/significance.json
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from scipy.stats import binomtest

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_eval.metrics import Metric, metric, paired_bootstrap, paired_permutation
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.text import read_lines

TESTS = {"bootstrap": paired_bootstrap, "permutation": paired_permutation}
LEVELS = (0.05, 0.01)
ERROR_RATE = 0.2
"""Share of the words that a random system replaces."""

Files = Annotated[tuple[Path, ...], Parameter(consume_multiple=True)]


def main(
    *,
    systems: Files = (),
    reference: Path | None = None,
    target: str = "en",
    metrics: Names = ("bleu", "chrf", "ter"),
    sentences: int = 300,
    trials: int = 1000,
    samples: int = 1000,
    seed: int = 1,
    out: Out = None,
) -> None:
    """Print a table.

    Args:
        systems: Outputs of two systems, a file each; random ones by default.
        reference: Reference translations.
        target: Language of the references.
        metrics: Metrics whose differences are tested.
        sentences: Sentences of the random systems.
        trials: Number of random exchanges.
        samples: Resamples of each test.
        seed: Seed of the exchanges; each test has a seed of its own in each trial.
        out: JSON file for the figures.
    """
    if reference is None:
        texts = random_systems(sentences)
    else:
        texts = [read_lines(path) for path in (*systems, reference)]
    figures: Figures = {"sentences": len(texts[2]), "trials": trials, "samples": samples, "metrics": {}}
    for name in metrics:
        scorer = metric(name, target=target)
        statistics = [scorer.sentence_statistics(text, [texts[2]]) for text in texts[:2]]
        figures["metrics"][name] = {
            test: shares(p_values(test, scorer, statistics, trials=trials, samples=samples, seed=seed))
            for test in TESTS
        }
        print_table(table_rows(name, figures["metrics"][name]))
    write_report(
        out, "false positives of paired tests", figures, provenance("mnmt-eval", "sacrebleu", "numpy")
    )


def random_systems(sentences: int) -> list[list[str]]:
    """Return the outputs of two random systems and their references."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(1000)])
    references = [rng.choice(words, rng.integers(5, 30)) for _ in range(sentences)]
    outputs = [
        [
            np.where(rng.random(len(line)) < ERROR_RATE, rng.choice(words, len(line)), line)
            for line in references
        ]
        for _ in range(2)
    ]
    return [[" ".join(line) for line in text] for text in (*outputs, references)]


def p_values(
    test: str, scorer: Metric, statistics: Sequence[Floats], *, trials: int, samples: int, seed: int
) -> list[float]:
    """Return the p-values of a test between the two systems, one for each exchange."""
    rng, values = np.random.default_rng(seed), []
    for trial in range(trials):
        is_exchanged = rng.random(len(statistics[0])) < 0.5
        systems = [np.where(is_exchanged[:, None], *pair) for pair in (statistics, statistics[::-1])]
        values.append(TESTS[test](scorer, *systems, samples=samples, seed=trial).p_value)
    return values


def shares(values: Sequence[float]) -> Figures:
    """Return the share of p-values below each level, with its interval."""
    counts = {level: sum(value < level for value in values) for level in LEVELS}
    intervals = {level: binomtest(count, len(values)).proportion_ci() for level, count in counts.items()}
    return {
        str(level): {
            "share": round(count / len(values), 4),
            "interval": [round(intervals[level].low, 4), round(intervals[level].high, 4)],
        }
        for level, count in counts.items()
    }


def table_rows(name: str, tests: Figures) -> list[Figures]:
    """Return a row for each test, its shares and intervals in percent."""
    return [
        {"metric": name, "test": test} | {f"p < {level}": percent(row) for level, row in rows.items()}
        for test, rows in tests.items()
    ]


def percent(row: Figures) -> str:
    """Return a share with its interval, in percent."""
    low, high = (f"{100 * end:.1f}" for end in row["interval"])
    return f"{100 * row['share']:4.1f}% [{low}, {high}]"


if __name__ == "__main__":
    run(main, smoke={"sentences": 30, "trials": 4, "samples": 20, "metrics": ("bleu",)})
