r"""Time of the scores of all pairs of candidates, beside sacreBLEU's sentence scores one by one.

Claim: counting each candidate's n-grams once, and what pairs share as products of matrices, gives the same
scores in a fraction of the time. Cited in docs/eval/search.md.

A source's candidates are copies of one random sentence with a fifth of its words replaced. The two ways take
turns, source by source; printed are milliseconds of the median source and the ratios. One that gives another
score than sacreBLEU ends the benchmark.

    python -m benchmarks.eval.minimum_bayes_risk --out benchmarks/results/eval/minimum_bayes_risk.json
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks.measurement import (
    Counts,
    Figures,
    Out,
    print_table,
    provenance,
    ratios,
    run,
    seconds_of,
    write_report,
)
from mnmt_eval.metrics import metric
from mnmt_eval.rerank import expected_scores

SACREBLEU = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}
WORDS = 20
REPLACED = 0.2
"""Share of the words that a candidate replaces."""


def main(*, candidates: Counts = (16, 64), sources: int = 9, out: Out = None) -> None:
    """Print a table.

    Args:
        candidates: Numbers of candidates of a source.
        sources: Sources of each number.
        out: JSON file for the figures.
    """
    rows = [measure(name, number, sources) for name in SACREBLEU for number in candidates]
    print_table(rows)
    write_report(
        out, "time of minimum Bayes risk", {"rows": rows}, provenance("mnmt-eval", "sacrebleu", "numpy")
    )


def measure(name: str, number: int, sources: int) -> Figures:
    """Return the row of a metric and a number of candidates."""
    ours, peer = [], []
    for seed in range(sources):
        texts = random_candidates(number, seed)
        ours.append(seconds_of(partial(by_matrices, name, texts)))
        peer.append(seconds_of(partial(one_by_one, name, texts)))
        np.testing.assert_allclose(by_matrices(name, texts), one_by_one(name, texts), rtol=1e-9)
    figures = {"metric": name, "candidates": number}
    times = {"ms": round(1e3 * median(ours), 1), "sacrebleu_ms": round(1e3 * median(peer), 1)}
    return {**figures, **times, **ratios(peer, ours)}


def random_candidates(number: int, seed: int) -> list[str]:
    """Return different candidates for one source."""
    rng = np.random.default_rng(seed)
    words = np.array(["".join(rng.choice(list("abcdefghij"), rng.integers(2, 9))) for _ in range(2000)])
    original = rng.choice(words, WORDS)
    replaced = rng.random((number, WORDS)) < REPLACED
    return [" ".join(line) for line in np.where(replaced, rng.choice(words, (number, WORDS)), original)]


def by_matrices(name: str, texts: list[str]) -> list[float]:
    """Return the expected score of each candidate."""
    (expected,) = expected_scores(metric(name, target="en"), [texts])
    return expected


def one_by_one(name: str, texts: list[str]) -> list[float]:
    """Return the same from sacreBLEU's score of every pair."""
    score = SACREBLEU[name].sentence_score
    return [float(np.mean([score(text, [other]).score for other in texts])) for text in texts]


if __name__ == "__main__":
    run(main, smoke={"candidates": (4,), "sources": 1})
