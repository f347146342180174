"""`mnmt-eval rerank`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import Json
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BleurtConfig, MetricConfig
from mnmt_eval.metrics.registry import METRICS

_METRICS = tuple(name for name in METRICS if name != "language")
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


_DEFAULT_RISK = RiskFlags()


def rerank(
    candidates: Path,
    /,
    *,
    column: str | None = None,
    risk: Annotated[RiskFlags, Parameter("*")] = _DEFAULT_RISK,
    as_json: Json = False,
) -> None:
    """Choose among candidate translations of each line, by minimum Bayes risk.

    Args:
        candidates: The table or JSON lines that `mnmt-eval translate --n-best` writes, an n-best list of
            Moses or Marian, or the output of fairseq-generate; `/dev/stdin` reads a pipe.
        column: The column with candidates, by its name in the first line or its number; or a key of JSON
            lines. By default `text`, or the third.
        risk: Options of minimum Bayes risk.
        as_json: Write a JSON object a line, with the values of all candidates.
    """
    from mnmt_data.readers import check_code
    from mnmt_eval.cli.progress import print_message
    from mnmt_eval.language import languages_of
    from mnmt_eval.metrics import metric
    from mnmt_eval.rerank import choose_by_risk, read_candidates
    from mnmt_eval.text import NamedLines, join_lines, marks_in

    if risk.metric not in _METRICS:
        raise EvalError(f"`--metric` must be one of {', '.join(_METRICS)}, but is {risk.metric!r}.")
    src, target = languages_of(risk.task) if risk.task else ("", "")
    check_code(src)
    check_code(target)
    judge = metric(risk.metric, target=target, config=MetricConfig(bleurt=risk.bleurt))
    sources = read_candidates(candidates, column)
    samples = read_candidates(risk.samples, column) if risk.samples else sources
    if len(samples) != len(sources):
        raise EvalError(
            f"{risk.samples}: must have samples for each of {len(sources)} sources, but has {len(samples)}."
        )
    for name, groups in {candidates: sources, risk.samples or candidates: samples}.items():
        for remark in marks_in(
            NamedLines(name=str(name), lines=[text for texts in groups for text in texts])
        ):
            print_message(remark)
    for number, choice in enumerate(choose_by_risk(judge, sources, samples=samples), start=1):
        line = text = join_lines(choice.text)
        if as_json:
            content = {"line": number, "text": text, "choice": choice.index + 1, "value": choice.value}
            line = json.dumps(
                content | {"values": choice.values, "judge": judge.signature}, ensure_ascii=False
            )
        sys.stdout.buffer.write(f"{line}\n".encode())
