"""Tables as lines of a terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mnmt_eval.compare.comparison import SystemScore, TextComparison
    from mnmt_eval.compare.tables import Cell, Section, Table

Format = Literal["text", "markdown", "latex", "csv"]

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$",
    "<": "$<$", ">": "$>$", "→": r"$\rightarrow$", "|": "$|$", **{each: f"\\{each}" for each in "&%$#_{}"},
})  # fmt: skip
_SIGN = re.compile(r"^([+-])(?=\d)")
_MARKDOWN = re.compile(r"[\\`*_|<>\[\]]")


def align(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table of equally long columns, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def format_comparisons(comparisons: Sequence[TextComparison], form: Format = "text") -> str:
    """Return all tables of comparisons in a format; those of papers begin with one of all metrics."""
    from mnmt_eval.compare.tables import sections

    if form == "csv":
        return _csv(comparisons)
    write = {"text": _text, "markdown": _markdown, "latex": _latex}[form]
    return "\n\n".join("\n".join(write(each)) for each in sections(comparisons, overviews=form != "text"))


def _text(section: Section) -> Iterator[str]:
    if all(section.title != table.title for table in section.tables):
        yield from (section.title, "")
    for place, table in enumerate(section.tables):
        yield from [""] * (place > 0)
        if table.title not in table.columns:
            yield table.title
        head, *rows = align(
            [[_head(table, name), *map(_plain, each)] for name, each in table.columns.items()]
        )
        yield head
        for number, row in enumerate(rows):
            if number in table.breaks and table.kind == "ranking":
                yield "-" * max(map(len, (head, *rows)))
            yield row
    yield from [""] * bool(section.signatures)
    yield from (*section.notes, *section.signatures)


def _head(table: Table, name: str) -> str:
    return f"{name} [95% interval]" if table.has_intervals(name) else name


def _plain(cell: Cell) -> str:
    interval = f" [{', '.join(cell.interval)}]" if cell.interval else ""
    return f"{cell.text}{interval}{' *' * cell.is_significant}"


def _markdown(section: Section) -> Iterator[str]:
    yield f"### {_escaped_markdown(section.title)}"
    for table in section.tables:
        names = [_escaped_markdown(_head(table, name)) for name in table.columns]
        yield from ("", f"**{_escaped_markdown(table.title)}**", "")
        yield f"| {' | '.join(names)} |"
        yield f"|{'--|' * len(names)}"
        for row in table.rows:
            yield f"| {' | '.join(map(_markdown_cell, row))} |"
    yield ""
    yield from (f"- {_escaped_markdown(line)}" for line in (*section.notes, *section.signatures))


def _markdown_cell(cell: Cell) -> str:
    text, rest = _escaped_markdown(cell.text), _escaped_markdown(_plain(cell)[len(cell.text) :])
    return f"**{text}**{rest}" if cell.is_best else f"{text}{rest}"


def _escaped_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", text)


def _latex(section: Section) -> Iterator[str]:
    """Yield a `tabular` for each table, with the lines of the package booktabs."""
    yield f"% {section.title}; needs \\usepackage{{booktabs}}"
    for table in section.tables:
        yield from ("", f"% {table.title}")
        yield f"\\begin{{tabular}}{{@{{}}{'l' * len(table.columns)}@{{}}}}"
        yield "\\toprule"
        yield f"{' & '.join(_head(table, name).translate(_LATEX) for name in table.columns)} \\\\"
        yield "\\midrule"
        for number, row in enumerate(table.rows):
            if number in table.breaks:
                yield "\\midrule"
            yield f"{' & '.join(map(_latex_cell, row))} \\\\"
        yield from ("\\bottomrule", "\\end{tabular}")
    yield ""
    yield from (f"% {line}" for line in (*section.notes, *section.signatures))


def _latex_cell(cell: Cell) -> str:
    text, *ends = (_SIGN.sub(r"$\1$", each.translate(_LATEX)) for each in (cell.text, *(cell.interval or ())))
    text = f"\\textbf{{{text}}}" if cell.is_best else text
    interval = rf" {{\scriptsize [{', '.join(ends)}]}}" if ends else ""
    return f"{text}{interval}{'$^{*}$' * cell.is_significant}"


def _csv(comparisons: Sequence[TextComparison]) -> str:
    """Return a line for each text, metric and system, with all digits."""
    rows = [
        {
            "testset": each.testset,
            "task": each.task,
            "metric": metric.metric,
            "higher_is_better": metric.higher_is_better,
            **_csv_row(score),
            "signature": metric.signature,
        }
        for each in comparisons
        for metric in each.metrics
        for score in metric.ranked
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().rstrip("\n")


def _csv_row(score: SystemScore) -> dict[str, object]:
    against, counts = score.against_baseline, score.sentences
    return {
        "system": score.system,
        "rank": score.rank.best,
        "rank_worst": score.rank.worst,
        "value": score.value,
        "lower": score.lower,
        "upper": score.upper,
        "difference": against and against.test.difference,
        "difference_lower": against and against.interval.lower,
        "difference_upper": against and against.interval.upper,
        "p_value": against and against.test.p_value,
        "corrected_p_value": against and against.p_value,
        "wins": counts and counts.wins,
        "ties": counts and counts.ties,
        "losses": counts and counts.losses,
    }
