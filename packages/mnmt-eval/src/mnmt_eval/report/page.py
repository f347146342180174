"""The page of a report: one HTML file that needs nothing from outside."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from mnmt_data.store import atomic_file
from mnmt_eval.compare.tables import sections
from mnmt_eval.errors import EvalError
from mnmt_eval.report.document import FEW_WORDS, WRONG_LANGUAGE, ReportContent
from mnmt_eval.report.symptoms import SYMPTOMS

SCRIPTS = ("words.js", "view.js", "facets.js", "page.js")


def write_report(report: ReportContent, out: Path) -> Path:
    """Write `index.html` into a folder, which is created if need be.

    Returns:
        The page's path.

    Raises:
        EvalError: If a file stands where the folder would be.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EvalError(f"{out}: must be a folder, or a place for one, but there is a file.") from None
    index = out / "index.html"
    with atomic_file(index) as file:
        file.write(render(report).encode("utf-8"))
    return index


def render(report: ReportContent) -> str:
    """Return the page as HTML; text of any kind is displayed as it is and never run."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mnmt_eval", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["zip"] = zip
    first = report.comparisons[0]
    systems = [system.name for system in report.texts[0].systems]
    parts = sections(report.comparisons)
    of_texts, means = parts[: len(report.comparisons)], parts[len(report.comparisons) :]
    return environment.get_template("page.html.j2").render(
        report=report,
        title=report.title or f"Translations of {f'{len(systems)} systems' if systems[1:] else systems[0]}",
        data=_data(report),
        baseline=first.baseline,
        means=means,
        sections=of_texts,
        signatures=list(dict.fromkeys(line for each in of_texts for line in each.signatures)),
        style=_read("page.css"),
        script="\n".join(map(_read, SCRIPTS)),
        version=version("mnmt-eval"),
    )


def _data(report: ReportContent) -> dict[str, Any]:
    """Return what the scripts need; they open with the best system beside the baseline."""
    first = report.comparisons[0]
    (sorting,) = (metric for metric in first.metrics if metric.metric == report.worst_by)
    best = next((score.system for score in sorting.ranked if score.system != first.baseline), first.baseline)
    return {
        "metric": report.worst_by,
        "decimals": sorting.decimals,
        "few_words": FEW_WORDS,
        "higher_is_better": sorting.higher_is_better,
        "symptoms": (*SYMPTOMS, WRONG_LANGUAGE) if "language" in report.metrics else SYMPTOMS,
        "baseline": first.baseline,
        "best": best,
        "texts": [asdict(text) for text in report.texts],
    }


def _read(name: str) -> str:
    return files("mnmt_eval.report").joinpath(name).read_text(encoding="utf-8")
