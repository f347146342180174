r"""False and true positives of the paired tests, on two systems that differ in few lines or in all.

Claims: of equally good systems at most 5% have p < 0.05 by `paired_permutation`, however few lines differ; of
systems that are not equally good it finds as many as sacreBLEU's `--paired-ar` where that is right. Cited in
docs/eval/metrics.md.

In each trial the outputs of the lines that differ are exchanged at random: for *equal* systems with
probability ½, else so that the better line is in the second system with probability ½ + 1.25 / √lines, which
a test finds in about half of the trials. All other lines are the same in both systems. Lines differ if their
statistics do. `sacrebleu` counts exchanges as `--paired-ar` does (>, not ≥), with the same draws; `bootstrap`
is `--paired-bs`. Printed are the shares of trials with p < 0.05, with their 95% intervals. Without files, two
systems replace and drop words of random lines; for `language` they are in German or English words.

    python -m benchmarks.eval.significance --out benchmarks/results/eval/significance.json
    python -m benchmarks.eval.significance --sentences 300 --differing 300 --metrics bleu chrf ter \
        --tests permutation bootstrap --out benchmarks/results/eval/significance_bootstrap.json
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from benchmarks.eval.calibration import LEVEL, format_cell, perturb, random_lines, share
from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_eval.metrics import BootstrapIntervals, Metric, MetricConfig, metric
from mnmt_eval.metrics.config import LanguageConfig
from mnmt_eval.metrics.protocol import Floats
from mnmt_eval.metrics.significance import PermutationTests
from mnmt_eval.text import read_lines

ERROR_RATE = 0.2
"""Mean share of the words that a random system replaces or drops."""
WORDS = {
    "de": "der die und das nicht ein ist von mit auch auf wird für sich werden oder nach eine über bei wenn",
    "en": "the and of that with is was for which this from have they were their would there when been what",
}
"""Frequent words, which tell a language."""

Files = Annotated[tuple[Path, ...], Parameter(consume_multiple=True)]


def main(
    *,
    systems: Files = (),
    reference: Path | None = None,
    target: str = "de",
    metrics: Names = ("bleu", "chrf", "ter", "language"),
    tests: Names = ("permutation", "sacrebleu"),
    sentences: int = 1000,
    differing: Counts = (1, 2, 3, 5, 10, 30, 100, 1000),
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
        tests: Tests: `permutation`, `sacrebleu` and `bootstrap`.
        sentences: Sentences of each trial.
        differing: Numbers of lines that differ.
        trials: Number of trials.
        samples: Draws of each test.
        seed: Seed of systems and trials.
        out: JSON file for the figures.
    """
    rng = np.random.default_rng(seed)
    figures: Figures = {"sentences": sentences, "trials": trials, "samples": samples, "metrics": {}}
    config = MetricConfig(language=LanguageConfig(candidates=("de", "en")))
    for name in metrics:
        scorer = metric(name, target=target, config=config)
        if reference is None:
            texts = random_texts(name, 3 * sentences, rng)
        else:
            texts = [read_lines(path) for path in (*systems, reference)]
        pair = [scorer.sentence_statistics(text, [texts[2]]) for text in texts[:2]]
        rows = [
            {"lines that differ": lines}
            | positives(
                tests, scorer, pair, lines, sentences=sentences, trials=trials, samples=samples, rng=rng
            )
            for lines in differing
        ]
        figures["metrics"][name] = rows
        print_table(
            [{"metric": name} | {key: format_cell(value) for key, value in row.items()} for row in rows]
        )
    write_report(out, "positives of paired tests", figures, provenance("mnmt-eval", "sacrebleu", "numpy"))


def random_texts(name: str, lines: int, rng: np.random.Generator) -> list[list[str]]:
    """Return the outputs of two random systems and their references."""
    if name != "language":
        references = random_lines(lines, rng)
        return [*(perturb(references, ERROR_RATE, rng) for _ in range(2)), references]
    languages = [*(rng.choice(["de", "en"], lines) for _ in range(2)), ["de"] * lines]
    return [[" ".join(rng.choice(WORDS[code].split(), 12)) for code in text] for text in languages]


def positives(
    tests: Sequence[str],
    scorer: Metric,
    pair: Sequence[Floats],
    lines: int,
    *,
    sentences: int,
    trials: int,
    samples: int,
    rng: np.random.Generator,
) -> Figures:
    """Return the shares of p < 0.05 between equal systems, and between a worse and a better one."""
    scores = [scorer.sentence_scores(statistics) for statistics in pair]
    is_better = (scores[1] > scores[0]) == scorer.higher_is_better
    worse, better = (np.where(is_better[:, None], *sides) for sides in (pair, pair[::-1]))
    pool = np.flatnonzero((worse != better).any(axis=1))
    figures: Figures = {}
    for what, probability in {"equal": 0.5, "better": min(1.0, 0.5 + 1.25 / lines**0.5)}.items():
        counts = dict.fromkeys(tests, 0)
        for trial in range(trials):
            differing = rng.choice(pool, lines, replace=False)
            same = rng.choice(len(worse), sentences - lines)
            is_gain = rng.random((lines, 1)) < probability
            systems = [
                np.concatenate([worse[same], np.where(is_gain, *(each[differing] for each in sides))])
                for sides in ((worse, better), (better, worse))
            ]
            for test, p in p_values(tests, scorer, systems, samples, seed=trial).items():
                counts[test] += p < LEVEL
        figures |= {f"{what}: {test}": share(count, trials) for test, count in counts.items()}
    return figures


def p_values(
    tests: Sequence[str], scorer: Metric, systems: Sequence[Floats], samples: int, *, seed: int
) -> dict[str, float]:
    """Return the p-value of each test."""
    differ = (systems[0] != systems[1]).any(axis=1)
    # To exchanges, lines on which both systems agree are as good as their sum.
    short = [np.vstack([each[~differ].sum(axis=0), each[differ]]) for each in systems]
    permutation = PermutationTests(scorer, short, samples=samples, seed=seed)
    values = {"permutation": permutation.test(0, 1).p_value}
    draws = permutation.differences(0, 1)
    if "sacrebleu" in tests:
        larger = (np.abs(draws.by_chance) > abs(draws.observed)).sum()
        values["sacrebleu"] = float((larger + 1) / (samples + 1))
    if "bootstrap" in tests:
        one, two = BootstrapIntervals(scorer, systems, samples=samples, seed=seed).values
        sizes = np.abs(two - one)
        as_large = (sizes - sizes.mean() > abs(draws.observed)).sum()
        values["bootstrap"] = float((as_large + 1) / (samples + 1))
    return values


if __name__ == "__main__":
    smoke = {"sentences": 30, "differing": (1, 5), "trials": 4, "samples": 20, "metrics": ("bleu",)}
    run(main, smoke=smoke)
