"""How often each paired test calls chance a difference: two systems that are equally good by construction.

Two systems' outputs of every sentence are exchanged at random, so that neither is better. A test whose
p-values are right then finds p < 0.05 in 5 of 100 trials. Printed are the shares of trials below 0.05 and
0.01, with their 95% intervals, for `paired_bootstrap` (sacreBLEU's `--paired-bs`) and `paired_permutation`
(`--paired-ar`).

    python -m benchmarks.eval.significance ONE.txt TWO.txt --reference REF.txt --target de \
        --out benchmarks/results/eval/significance.json
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from scipy.stats import binomtest
from tqdm import tqdm

from mnmt_eval.metrics import Metric, metric, paired_bootstrap, paired_permutation
from mnmt_eval.metrics.metric import Floats
from mnmt_eval.text import read_lines

TESTS = {"bootstrap": paired_bootstrap, "permutation": paired_permutation}
METRICS = ("bleu", "chrf", "ter")
LEVELS = (0.05, 0.01)


def main(
    one: Path,
    two: Path,
    *,
    reference: Path,
    target: str,
    trials: int = 1000,
    samples: int = 1000,
    seed: int = 1,
    out: Path | None = None,
) -> None:
    """Print a table and write the figures.

    Args:
        one: A system's output.
        two: Another's.
        reference: The references.
        target: Their language.
        trials: Random exchanges.
        samples: Of each test.
        seed: Of the exchanges; each test has a seed of its own in each trial.
        out: JSON file to write.
    """
    texts = [read_lines(path) for path in (one, two, reference)]
    found = {}
    for name in METRICS:
        made = metric(name, target=target)
        statistics = [made.sentence_statistics(text, [texts[2]]) for text in texts[:2]]
        found[name] = {
            test: shares(p_values(test, made, statistics, trials=trials, samples=samples, seed=seed))
            for test in TESTS
        }
        print("\n".join(table(name, found[name])), flush=True)
    if out is not None:
        described = {
            "benchmark": "significance",
            "date": datetime.now(UTC).date().isoformat(),
            "versions": {package: version(package) for package in ("mnmt-eval", "sacrebleu", "numpy")},
            "sentences": len(texts[2]),
            "trials": trials,
            "samples": samples,
        }
        out.write_text(json.dumps(described | {"metrics": found}, indent=1) + "\n", encoding="utf-8")


def p_values(
    test: str, made: Metric, statistics: list[Floats], *, trials: int, samples: int, seed: int
) -> list[float]:
    """Of a test between the two systems after each exchange."""
    rng, values = np.random.default_rng(seed), []
    for trial in tqdm(range(trials), desc=f"{made.name} {test}"):
        exchanged = rng.random(len(statistics[0])) < 0.5
        systems = [np.where(exchanged[:, None], *pair) for pair in (statistics, statistics[::-1])]
        values.append(TESTS[test](made, *systems, samples=samples, seed=trial).p_value)
    return values


def shares(values: list[float]) -> dict[str, Any]:
    """Of the trials below each level, with their intervals."""
    below = {level: sum(value < level for value in values) for level in LEVELS}
    intervals = {level: binomtest(count, len(values)).proportion_ci() for level, count in below.items()}
    return {
        str(level): {
            "share": round(count / len(values), 4),
            "interval": [round(intervals[level].low, 4), round(intervals[level].high, 4)],
        }
        for level, count in below.items()
    }


def table(name: str, tests: dict[str, Any]) -> list[str]:
    """Lines for people."""
    return [
        f"{name:5} {test:12} " + "  ".join(f"p < {level}: {told(row)}" for level, row in rows.items())
        for test, rows in tests.items()
    ]


def told(row: dict[str, Any]) -> str:
    """A share with its interval, in percent."""
    low, high = (f"{100 * end:.1f}" for end in row["interval"])
    return f"{100 * row['share']:4.1f}% [{low}, {high}]"


if __name__ == "__main__":
    cyclopts.run(main)
