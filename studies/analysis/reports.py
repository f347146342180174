"""Remake what pages of docs/studies take from `mnmt-laws report`: its figures and report.json.

A file of the report that no page shows or links is not kept.

    python -m studies.analysis.reports                         every page
    python -m studies.analysis.reports --pages contexts        one
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Names, run
from mnmt_laws import ResidualBootstrap, build_report
from studies.page import PAGES

TABLES = dict.fromkeys(("synthetic", "contexts"), "runs.csv")
"""The run table of each page that shows a report of it."""

IMPORTANCE = {"synthetic": {"xx-aa": 2.0, "xx-bb": 1.0}}
"""The importance of tasks, where they do not count alike."""


def main(*, pages: Names = (*TABLES,), smoke: bool = False) -> None:
    """Build the report of each page and keep what pages use.

    Args:
        pages: Names of pages.
        smoke: Whether to leave refits out, and to keep nothing.
    """
    for page in pages:
        table = PAGES / page / TABLES[page]
        with TemporaryDirectory() as place:
            method = ResidualBootstrap(refits=0 if smoke else 200)
            report = build_report(
                table, out=place, testset="test", uncertainty=method, preference=IMPORTANCE.get(page)
            )
            print(f"{table}: {report.headline}")
            if not smoke:
                print("\n".join(f"  {line}" for line in keep_used(Path(place), table.parent)))


def keep_used(report: Path, page: Path) -> Iterator[str]:
    """Copy the files of a report that pages use to the page's folder, and remove the others there."""
    used = files_used(page.name)
    for file in [report / "report.json", *sorted((report / "figures").glob("*.svg"))]:
        if file.name in used:
            shutil.copyfile(file, page / file.name)
            yield file.name
        else:
            (page / file.name).unlink(missing_ok=True)
    for name in sorted(used - {file.name for file in page.iterdir()}):
        yield f"{name} is used by a page, but the report has no such file"


def files_used(page: str) -> set[str]:
    """Return the names of figures and JSON files of a page's folder that any Markdown page names."""
    texts = (file.read_text(encoding="utf-8") for file in [Path("README.md"), *Path("docs").rglob("*.md")])
    pattern = re.compile(rf"\b{re.escape(page)}/([\w.-]+\.(?:svg|json))\b")
    return {name for text in texts for name in pattern.findall(text)}


if __name__ == "__main__":
    run(main, smoke={"pages": ("contexts",), "smoke": True})
