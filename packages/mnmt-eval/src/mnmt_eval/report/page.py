"""The page of a report: one HTML file that needs nothing from outside."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import jinja2

from mnmt_data.store import atomic_file
from mnmt_eval.metrics.config import BOOTSTRAP_SAMPLES
from mnmt_eval.report.document import WRONG_LANGUAGE, Report
from mnmt_eval.report.symptoms import SYMPTOMS

SCRIPTS = ("words.js", "page.js")


def write_report(report: Report, out: Path) -> Path:
    """Write `index.html` into a folder, which is created if need be.

    Returns:
        The page's path.
    """
    out.mkdir(parents=True, exist_ok=True)
    index = out / "index.html"
    with atomic_file(index) as file:
        file.write(render(report).encode("utf-8"))
    return index


def render(report: Report) -> str:
    """Return the page as HTML; text of any kind is displayed as it is and never run."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mnmt_eval", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html.j2").render(
        report=report,
        data=asdict(report),
        systems=[system.name for system in report.texts[0].systems],
        samples=BOOTSTRAP_SAMPLES,
        symptoms=_symptoms(report),
        style=_read("page.css"),
        script="\n".join(map(_read, SCRIPTS)),
        version=version("mnmt-eval"),
    )


def _symptoms(report: Report) -> tuple[str, ...]:
    """Return the symptoms that a reader can choose from."""
    return (*SYMPTOMS, WRONG_LANGUAGE) if "language" in report.metrics else SYMPTOMS


def _read(name: str) -> str:
    return files("mnmt_eval.report").joinpath(name).read_text(encoding="utf-8")
