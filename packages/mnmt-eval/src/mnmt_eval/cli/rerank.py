"""`mnmt-eval rerank`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import Json
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BleurtConfig, MetricConfig
from mnmt_eval.metrics.registry import METRICS

if TYPE_CHECKING:
    from mnmt_eval.metrics import Metric
    from mnmt_eval.rerank import Candidates, Choice

_METRICS = tuple(name for name in METRICS if name not in ("language", "comet"))
"""The metrics that compare two texts."""


@dataclass(frozen=True, kw_only=True)
class RiskFlags:
    """Options of minimum Bayes risk."""

    samples: Path | None = None
    """A file of samples to compare the candidates with, in the same form; by default the candidates."""
    metric: str = "chrf"
    """The metric: chrf, chrf++, bleu, ter, bleurt."""
    task: str | None = None
    """The language pair, such as `en-de`, which bleu needs."""
    bleurt: BleurtConfig = field(default_factory=BleurtConfig)

    def check_metric(self) -> None:
        """Refuse a metric that compares nothing with references.

        Raises:
            EvalError: If it is such, or unknown.
        """
        if self.metric not in _METRICS:
            raise EvalError(f"`--metric` must be one of {', '.join(_METRICS)}, but is {self.metric!r}.")

    def open_metric(self) -> Metric:
        """Return the metric.

        Raises:
            EvalError: If it is unknown, or what it needs is missing.
        """
        from mnmt_eval.language import languages_of
        from mnmt_eval.metrics import metric

        config = MetricConfig(bleurt=self.bleurt)
        target = languages_of(self.task)[1] if self.task else ""
        return metric(self.metric, target=target, config=config)


_DEFAULT_RISK = RiskFlags()


def rerank(
    candidates: Path,
    /,
    *,
    score_column: str | None = None,
    score_file: Path | None = None,
    risk: Annotated[RiskFlags, Parameter("*")] = _DEFAULT_RISK,
    as_json: Json = False,
) -> None:
    """Choose among candidate translations of each line, by minimum Bayes risk or by a score.

    Args:
        candidates: The table or JSON lines that `mnmt-eval translate --n-best` writes, or any that has a
            candidate a line in the column or key `text`, and its source line in `line`; `/dev/stdin` reads a
            pipe.
        score_column: Choose the highest score in this column, such as 2, or key, such as `score`.
        score_file: Choose the highest score in this file: a score for each candidate, one a line, or what
            `comet-score --to_json` wrote.
        risk: Options of minimum Bayes risk, by which is chosen without a column or file of scores.
        as_json: Write a JSON object a line, with the values of all candidates.
    """
    from mnmt_eval.rerank import read_candidates
    from mnmt_eval.text import join_lines

    if score_column and score_file:
        raise EvalError("rerank takes either `--score-column` or `--score-file`.")
    if (score_column or score_file) and risk != _DEFAULT_RISK:
        raise EvalError("rerank takes either scores or options of minimum Bayes risk.")
    risk.check_metric()
    sources = read_candidates(candidates, score_column=score_column)
    if score_column or score_file:
        judge, choices = f"{score_column or score_file}", _by_score(sources, score_file)
    else:
        metric = risk.open_metric()
        judge, choices = metric.signature, _by_risk(metric, sources, risk)
    for number, choice in enumerate(choices, start=1):
        text = join_lines(choice.text)
        if as_json:
            content = {"line": number, "text": text, "choice": choice.index + 1, "value": choice.value}
            content |= {"values": choice.values, "judge": judge}
            line = json.dumps(content, ensure_ascii=False)
        else:
            line = text
        sys.stdout.buffer.write(f"{line}\n".encode())


def _by_score(sources: Sequence[Candidates], score_file: Path | None) -> Iterator[Choice]:
    from mnmt_eval.metrics.comet import read_comet_scores
    from mnmt_eval.rerank import choose_by_score

    texts = [source.texts for source in sources]
    if score_file is None:
        yield from choose_by_score(texts, [source.scores for source in sources])
    else:
        flat = iter(read_comet_scores(score_file, [text for each in texts for text in each]))
        yield from choose_by_score(texts, [[next(flat) for _ in each] for each in texts])


def _by_risk(metric: Metric, sources: Sequence[Candidates], risk: RiskFlags) -> Iterator[Choice]:
    from mnmt_eval.rerank import choose_by_risk, read_candidates

    samples = read_candidates(risk.samples) if risk.samples else sources
    if len(samples) != len(sources):
        raise EvalError(
            f"{risk.samples}: must have samples for each of {len(sources)} sources, but has {len(samples)}."
        )
    yield from choose_by_risk(
        metric,
        [source.texts for source in sources],
        samples=[each.texts for each in samples],
    )
