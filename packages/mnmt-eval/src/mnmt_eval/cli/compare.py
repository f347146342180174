"""`mnmt-eval compare`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mnmt_eval.cli.options import DEFAULT_METRIC_FLAGS, Json, MetricFlags, Paths, Systems
from mnmt_eval.cli.tables import comparison_table
from mnmt_eval.compare.comparison import (
    CompareConfig,
    Comparison,
    MetricComparison,
    SystemScore,
    compare_systems,
)
from mnmt_eval.compare.systems import name_systems, open_systems
from mnmt_eval.metrics.resampling import BOOTSTRAP_SAMPLES, SEED
from mnmt_eval.metrics.significance import PERMUTATION_SAMPLES, PairedTest
from mnmt_eval.runs.texts import text_files


def compare(
    systems: Systems,
    /,
    *,
    reference: Paths = None,
    source: Path | None = None,
    task: str | None = None,
    testset: str = "test",
    baseline: str | None = None,
    metrics: MetricFlags = DEFAULT_METRIC_FLAGS,
    by: str | None = None,
    test: str = CompareConfig.test,
    samples: int = BOOTSTRAP_SAMPLES,
    permutations: int = PERMUTATION_SAMPLES,
    seed: int = SEED,
    as_json: Json = False,
) -> None:
    """Compare systems: every metric with its interval, and significance against a baseline.

    Args:
        systems: Files with a translation a line, whatever made them; runs that `mnmt-eval score` has scored;
            or folders of runs. `NAME=FILE` gives a system a name.
        reference: A file with a reference a line, or several; by default the references of the runs' data.
        source: A file with a source sentence a line, for comet and for groups by length.
        task: The language pair, such as `en-de`; for runs by default every pair.
        testset: The runs' test set.
        baseline: The system that others are tested against; by default the first.
        metrics: Metrics and their options.
        by: Score groups of sentences apart: `origin` (which side was written first), `length`, or `thirds`.
        test: The paired test of significance: `permutation` or `bootstrap`.
        samples: Resamples of the bootstrap.
        permutations: Random exchanges of the permutation test.
        seed: Seed of the bootstrap and of the permutation test.
        as_json: Print the comparisons as JSON.
    """
    config = CompareConfig(
        metrics=metrics.metric_set,
        test=test,
        samples=samples,
        permutations=permutations,
        seed=seed,
        grouping=by,
    )
    files = text_files(references=reference or (), source=source, task=task)
    translated = open_systems(name_systems(systems), testset=testset, task=task, files=files)
    comparisons = [compare_systems(each, config, baseline=baseline) for each in translated]
    if as_json:
        documents = [_comparison_json(each) for each in comparisons]
        print(json.dumps({"comparisons": documents}, ensure_ascii=False))
    else:
        print("\n\n".join(map(comparison_table, comparisons)))


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    config = comparison.config
    return {
        "testset": comparison.testset,
        "task": comparison.task,
        "sentences": comparison.sentences,
        "baseline": comparison.baseline,
        "test": config.test,
        "samples": config.samples,
        "permutations": config.permutations,
        "seed": config.seed,
        "searches": dict(comparison.searches),
        "metrics": [_metric_json(each) for each in comparison.metrics],
    }


def _metric_json(comparison: MetricComparison) -> dict[str, Any]:
    return {
        "metric": comparison.metric,
        "higher_is_better": comparison.higher_is_better,
        "systems": [_system_json(score) for score in comparison.scores],
    }


def _system_json(score: SystemScore) -> dict[str, Any]:
    return {
        "system": score.system,
        "signature": score.signature,
        "value": score.value,
        "interval": [score.lower, score.upper],
        "against_baseline": None if score.test is None else _test_json(score.test),
        "groups": [asdict(group) for group in score.groups],
    }


def _test_json(test: PairedTest) -> dict[str, Any]:
    interval = test.interval
    return {
        "difference": test.difference,
        "interval": None if interval is None else [interval.lower, interval.upper],
        "p_value": test.p_value,
        "signature": test.signature,
    }
