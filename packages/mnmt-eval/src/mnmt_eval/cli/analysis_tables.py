"""Tables of analyses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mnmt_eval.cli.table_formats import align
from mnmt_eval.metrics.protocol import column_title, format_value

if TYPE_CHECKING:
    from mnmt_eval.analysis.experts import ExpertLayer, ExpertUse, LayerSpecialisation
    from mnmt_eval.analysis.multilingual import ResourceScore
    from mnmt_eval.analysis.run_analysis import Analyses, RunAnalysis

FAVOURITES = 4
"""Experts of each task that are printed."""

_RESOURCES = ("High", "Med", "Low", "All")


def analyses_table(analyses: Analyses) -> str:
    """Format the analyses that the runs allow, one below the other."""
    sections = [_differing, _resources, _zero_shot, _transfer, _cost, _signatures]
    blocks = [lines for section in sections if (lines := list(section(analyses)))]
    return "\n\n".join("\n".join(lines) for lines in blocks)


def _resources(analyses: Analyses) -> Iterator[str]:
    metric = column_title(analyses.metric)
    yield f"{metric} on {analyses.testset}, means over tasks by training pairs (number of tasks)"
    yield from _resource_rows([(run.run, run.resources) for run in analyses.runs], analyses.metric)
    directions = list(dict.fromkeys(name for run in analyses.runs for name in run.resources_by_direction))
    for direction in directions if len(directions) > 1 else ():
        yield ""
        yield direction
        rows = [(run.run, run.resources_by_direction.get(direction, ())) for run in analyses.runs]
        yield from _resource_rows(rows, analyses.metric)


def _transfer(analyses: Analyses) -> Iterator[str]:
    runs = [run for run in analyses.runs if run.transfer]
    if runs:
        yield f"transfer: {column_title(analyses.metric)} less the baseline's"
        yield from _resource_rows([(run.run, run.transfer_by_resource) for run in runs], analyses.metric)
        yield ""
        yield from align(list(_transfer_columns(runs, analyses.metric)))


def _transfer_columns(runs: Sequence[RunAnalysis], metric: str) -> Iterator[list[str]]:
    tasks = dict.fromkeys(each.task for run in runs for each in run.transfer)
    yield ["", *(run.run for run in runs)]
    differences = [{each.task: each.difference for each in run.transfer} for run in runs]
    for task in tasks:
        yield [
            task,
            *(
                format_value(of_run[task], metric, sign="+") if task in of_run else ""
                for of_run in differences
            ),
        ]


def _resource_rows(rows: Sequence[tuple[str, Sequence[ResourceScore]]], metric: str) -> Iterator[str]:
    columns = [["", *(name for name, _ in rows)]]
    for group in _RESOURCES:
        row = [{score.group: score for score in scores}.get(group) for _, scores in rows]
        if any(row):
            cells = [
                "" if score is None else f"{format_value(score.value, metric)} ({len(score.tasks)})"
                for score in row
            ]
            columns.append([group, *cells])
    return align(columns)


def _zero_shot(analyses: Analyses) -> Iterator[str]:
    rows = [(run.run, run.zero_shot) for run in analyses.runs if run.zero_shot is not None]
    if rows:
        yield "zero-shot: mean over directions without training pairs"
        accuracies = [z.mean_language_accuracy for _, z in rows]
        yield from align(
            [
                ["", *(name for name, _ in rows)],
                ["directions", *(str(len(z.directions)) for _, z in rows)],
                [analyses.metric, *(format_value(z.mean_value, analyses.metric) for _, z in rows)],
                ["right language", *("not measured" if a is None else f"{a:.1f}%" for a in accuracies)],
            ]
        )


def _cost(analyses: Analyses) -> Iterator[str]:
    if analyses.cost:
        metric = analyses.metric
        yield "quality against cost; * no other run is as good for less flops"
        yield from align(
            [
                ["", *(row.name for row in analyses.cost)],
                [metric, *(format_value(row.value, metric) for row in analyses.cost)],
                ["Δ", *(format_value(row.difference, metric, sign="+") for row in analyses.cost)],
                ["flops", *(f"{row.cost:.3g}" for row in analyses.cost)],
                ["", *("*" if row.efficient else "" for row in analyses.cost)],
            ]
        )


def _differing(analyses: Analyses) -> Iterator[str]:
    if analyses.differing:
        tasks = ", ".join(analyses.differing)
        yield f"{tasks}: measured in different ways, so not comparable; score all runs with the same options"


def _signatures(analyses: Analyses) -> Iterator[str]:
    """Yield a line per way of measuring, with its tasks, and with its runs if they differ."""
    tasks: dict[str, list[str]] = {}
    for task, ways in analyses.signatures.items():
        for signature, runs in ways.items():
            whose = f"{', '.join(runs)} on " if task in analyses.differing else ""
            tasks.setdefault(f"{whose}{{}}: {signature}", []).append(task)
    yield from (line.replace("{}", ", ".join(each), 1) for line, each in tasks.items())


def experts_table(use: ExpertUse) -> str:
    """Format which experts of a run serve which tasks."""
    return "\n".join(_expert_lines(use))


def _expert_lines(use: ExpertUse) -> Iterator[str]:
    """Yield the lines of a run: a table of its layers, and one of the experts of each task."""
    experts = len(use.layers[0].loads)
    yield f"{use.run}, {use.testset}, step {use.step:,}: {len(use.tasks)} tasks, {experts} experts"
    yield ""
    columns = [["", *(layer.name for layer in use.layers)]]
    columns += [
        [name, *(_format(layer.specialisation[name]) for layer in use.layers)]
        for name in use.layers[0].specialisation
    ]
    loads = [f"{min(layer.loads):.2f} – {max(layer.loads):.2f}" for layer in use.layers]
    yield from align([*columns, ["load", *loads]])
    yield ""
    layer = max(use.layers, key=lambda layer: layer.specialisation["task"].nats)
    which = f"{layer.name}, which tells most" if len(use.layers) > 1 else layer.name
    yield f"{which}: the experts that serve each task most, with their shares of its choices"
    yield from align([list(use.tasks), *_favourites(layer)])


def _format(estimate: LayerSpecialisation) -> str:
    return f"{estimate.share:z.3f} [{estimate.lower:z.3f}, {estimate.upper:z.3f}]"


def _favourites(layer: ExpertLayer) -> Iterator[list[str]]:
    """Yield a column of each task's most used expert, of its second, and so on."""
    for place in range(min(FAVOURITES, len(layer.loads))):
        ranked = [sorted(enumerate(row), key=lambda pair: -pair[1])[place] for row in layer.shares]
        yield [f"{expert}: {100 * share:.0f}%" for expert, share in ranked]
