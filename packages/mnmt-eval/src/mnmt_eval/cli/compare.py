"""`mnmt-eval compare`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mnmt_eval.cli.options import (
    DEFAULT_METRIC_FLAGS,
    DEFAULT_TEXT_FLAGS,
    Columns,
    Flag,
    Json,
    MetricFlags,
    Names,
    Systems,
    TextFlags,
)
from mnmt_eval.cli.table_formats import Format
from mnmt_eval.compare.config import CompareConfig, score_files
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BOOTSTRAP_SAMPLES, PERMUTATION_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnmt_eval.compare import TranslatedText
    from mnmt_eval.compare.comparison import GroupScore, MetricComparison, SystemScore, TextComparison
    from mnmt_eval.compare.pairs import CorrectedTest


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoreFlags:
    """Scores that were made elsewhere."""

    scores: Columns = ()
    """A file with scores of sentences made elsewhere, as `metricx=scores.jsonl`: with a column for each
    system, or a file a system; COMET's, MetricX's or bare numbers. `None` is a missing score. No reference is
    needed then."""
    lower_is_better: Annotated[Names, Parameter(show_default=False)] = ()
    """Those of --scores of which lower values are better; of MetricX they are."""
    human: str | None = None
    """The metric of --scores that people gave; print how far the others order pairs alike."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PageFlags:
    """The page."""

    page: Path | None = None
    """Folder for a page to send around, index.html, with the comparison and translations to read."""
    title: str = ""
    """The title of the page."""
    worst_by: str | None = None
    """The metric that the page sorts sentences by: by default chrf, or the first if that is not among them;
    `loss` with --losses."""
    sentences: int = 1000
    """Sentences of each text on the page: those on which systems disagree most, or that one translated
    worst."""

    def write(
        self, folder: Path, translated: Sequence[TranslatedText], config: CompareConfig, baseline: str | None
    ) -> list[TextComparison]:
        """Write the page, and return the comparisons on it."""
        from mnmt_eval.report import ReportConfig, make_report, write_report

        if other := next((each for each in translated if each.names != translated[0].names), None):
            first = translated[0].text.name
            raise EvalError(f"{other.text.name}: has other systems than {first}; name a pair with --task.")
        options = ReportConfig(
            comparison=config,
            worst_by=self.worst_by,
            sentences=self.sentences,
            baseline=baseline,
            title=self.title,
        )
        report = make_report(translated, options)
        print(f"wrote {write_report(report, folder)}", file=sys.stderr)
        return list(report.comparisons)


_DEFAULT_SCORES, _DEFAULT_PAGE = ScoreFlags(), PageFlags()


def compare(
    systems: Systems,
    /,
    *,
    text: TextFlags = DEFAULT_TEXT_FLAGS,
    baseline: str | None = None,
    metrics: MetricFlags = DEFAULT_METRIC_FLAGS,
    scores: ScoreFlags = _DEFAULT_SCORES,
    by: str | None = None,
    losses: Flag = False,
    page: PageFlags = _DEFAULT_PAGE,
    samples: int = BOOTSTRAP_SAMPLES,
    permutations: int = PERMUTATION_SAMPLES,
    form: Annotated[Format, Parameter("--format")] = "text",
    as_json: Json = False,
) -> None:
    """Compare systems: every metric with its interval, tests of all pairs, and ranks; as a page too.

    Args:
        systems: Files with a translation a line, by any system; runs that `mnmt-eval score` has scored;
            or folders of either. `NAME=FILE` gives a system a name.
        text: The text that they translated.
        baseline: The system that others are tested against; by default the first.
        metrics: Metrics and their options.
        scores: Scores that were made elsewhere.
        by: Score and test groups of sentences apart: `origin` (which side was written first), `length`, or
            `eighths` or `thirds` of the sentences by length.
        losses: Compare the losses of runs too, on the references of their data; each loads its model.
        page: The page.
        samples: Resamples of the bootstrap, for intervals.
        permutations: Random exchanges of the permutation test, where not all can be made.
        form: Print the tables as `text`, `markdown` or `latex` (booktabs; the best ranks are bold), or as
            `csv`, a line for each text, metric and system with all digits.
        as_json: Print the comparisons as JSON.
    """
    # Imported here, since `--help` needs no numbers.
    from mnmt_eval.cli.progress import print_message
    from mnmt_eval.cli.table_formats import format_comparisons
    from mnmt_eval.compare import compare_systems
    from mnmt_eval.compare.comparison import all_remarks

    translated = text.open(systems, reference_free=bool(scores.scores))
    metric_set = metrics.metric_set
    if not metrics.metric and not all(each.text.references for each in translated):
        metric_set = replace(metric_set, names=())
    config = CompareConfig(
        metrics=metric_set,
        scores=score_files(scores.scores, scores.lower_is_better),
        human=scores.human,
        samples=samples,
        permutations=permutations,
        grouping=by,
        losses=losses,
    )
    if page.page is None:
        comparisons = [compare_systems(each, config, baseline=baseline) for each in translated]
    else:
        comparisons = page.write(page.page, translated, config, baseline)
    remarks = all_remarks(translated, comparisons)
    for remark in remarks:
        print_message(remark)
    print(_json(comparisons, remarks) if as_json else format_comparisons(comparisons, form))


def _json(comparisons: Sequence[TextComparison], remarks: Sequence[str]) -> str:
    from mnmt_eval.compare.averages import average_directions

    documents = [_comparison_json(each) for each in comparisons]
    averages = [asdict(each) for each in average_directions(comparisons)]
    document = {"comparisons": documents, "averages": averages, "remarks": remarks}
    return json.dumps(document, ensure_ascii=False)


def _comparison_json(comparison: TextComparison) -> dict[str, Any]:
    config = comparison.config
    return {
        "testset": comparison.testset,
        "task": comparison.task,
        "sentences": comparison.sentences,
        "documents": comparison.documents,
        "baseline": comparison.baseline,
        "samples": config.samples,
        "permutations": config.permutations,
        "seed": config.seed,
        "searches": dict(comparison.searches),
        "agreements": [asdict(each) for each in comparison.agreements],
        "metrics": [_metric_json(each) for each in comparison.metrics],
    }


def _metric_json(comparison: MetricComparison) -> dict[str, Any]:
    return {
        "metric": comparison.metric,
        "higher_is_better": comparison.higher_is_better,
        "systems": [_system_json(score, comparison.signature) for score in comparison.scores],
        "pairs": [
            {"systems": [pair.first, pair.second], **_test_json(pair.result)} for pair in comparison.pairs
        ],
    }


def _system_json(score: SystemScore, signature: str) -> dict[str, Any]:
    against = _against_json(score)
    if against is not None and score.sentences is not None:
        against |= asdict(score.sentences)
    return {
        "system": score.system,
        "signature": signature,
        "value": score.value,
        "interval": [score.lower, score.upper],
        "rank": [score.rank.best, score.rank.worst],
        "cluster": score.rank.cluster,
        "against_baseline": against,
        "groups": [_group_json(group) for group in score.groups],
    }


def _group_json(group: GroupScore) -> dict[str, Any]:
    return {
        "group": group.group,
        "sentences": group.sentences,
        "value": group.value,
        "interval": [group.lower, group.upper],
        "against_baseline": _against_json(group),
    }


def _against_json(score: SystemScore | GroupScore) -> dict[str, Any] | None:
    return None if score.against_baseline is None else _test_json(score.against_baseline)


def _test_json(result: CorrectedTest) -> dict[str, Any]:
    return {
        "difference": result.test.difference,
        "interval": [result.interval.lower, result.interval.upper],
        "p_value": result.test.p_value,
        "corrected_p_value": result.p_value,
        "signature": result.test.signature,
    }
