"""`mnmt-eval compare`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mnmt_eval.cli.options import NO_FLAGS, Json, MetricFlags, app
from mnmt_eval.cli.tables import comparison_table
from mnmt_eval.compare.comparison import Comparing, Comparison, MetricComparison, SystemScore, compare_systems
from mnmt_eval.compare.systems import name_systems, open_systems
from mnmt_eval.metrics import PairedTest
from mnmt_eval.metrics.resampling import BOOTSTRAP_SAMPLES, SEED
from mnmt_eval.metrics.significance import PERMUTATION_SAMPLES
from mnmt_eval.runs.texts import text_files


@app.command
def compare(
    systems: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    reference: Annotated[list[Path] | None, Parameter(negative="", consume_multiple=True)] = None,
    source: Path | None = None,
    pair: str | None = None,
    testset: str = "test",
    baseline: str | None = None,
    metric: MetricFlags = NO_FLAGS,
    by: str | None = None,
    test: str = Comparing.test,
    samples: int = BOOTSTRAP_SAMPLES,
    permutations: int = PERMUTATION_SAMPLES,
    seed: int = SEED,
    as_json: Json = False,
) -> None:
    """Print systems side by side: every metric with its interval, and significance against a baseline.

    A system is a file with a translation a line, whatever made it, or a run that `mnmt-eval score` has
    measured. `NAME=FILE` gives it a name.

    Args:
        systems: Files, runs, or folders of runs.
        reference: A file with a reference a line, or several; by default the references of the runs' data.
        source: A file with a source sentence a line, for comet and for groups by length.
        pair: The language pair, such as `en-de`; of runs all pairs by default.
        testset: The runs' test set.
        baseline: The system that others are tested against; by default the first.
        metric: Metrics and their options.
        by: Score groups of sentences apart: `origin` (which side was written first), `length`, or `thirds`.
        test: Of significance: paired `permutation` or `bootstrap`.
        samples: Resamples of the bootstrap.
        permutations: Random exchanges of the permutation test.
        seed: Of both.
        as_json: Print the comparisons as JSON.
    """
    comparing = Comparing(
        metrics=metric.choice,
        test=test,
        samples=samples,
        permutations=permutations,
        seed=seed,
        grouping=by,
    )
    files = text_files(references=reference or (), source=source, pair=pair)
    opened = open_systems(name_systems(systems), testset=testset, pair=pair, files=files)
    comparisons = [compare_systems(translated, comparing, baseline=baseline) for translated in opened]
    if as_json:
        documents = [comparison_document(each) for each in comparisons]
        print(json.dumps({"comparisons": documents}, ensure_ascii=False))
    else:
        print("\n\n".join(map(comparison_table, comparisons)))


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison in plain values: a list of metrics, each with a list of systems."""
    how = comparison.comparing
    return {
        "testset": comparison.testset,
        "task": comparison.task,
        "sentences": comparison.sentences,
        "baseline": comparison.baseline,
        "test": how.test,
        "samples": how.samples,
        "permutations": how.permutations,
        "seed": how.seed,
        "searches": dict(comparison.searches),
        "metrics": [_metric(each) for each in comparison.metrics],
    }


def _metric(compared: MetricComparison) -> dict[str, Any]:
    return {
        "metric": compared.metric,
        "higher_is_better": compared.higher_is_better,
        "systems": [_system(score) for score in compared.scores],
    }


def _system(score: SystemScore) -> dict[str, Any]:
    return {
        "system": score.system,
        "signature": score.signature,
        "value": score.value,
        "interval": [score.lower, score.upper],
        "against_baseline": None if score.test is None else _test(score.test),
        "groups": [asdict(group) for group in score.groups],
    }


def _test(test: PairedTest) -> dict[str, Any]:
    interval = test.interval
    return {
        "difference": test.difference,
        "interval": None if interval is None else [interval.lower, interval.upper],
        "p_value": test.p_value,
        "signature": test.signature,
    }
