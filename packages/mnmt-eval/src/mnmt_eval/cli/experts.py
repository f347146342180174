"""`mnmt-eval experts`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import Json
from mnmt_eval.cli.tables import align
from mnmt_eval.errors import EvalError, require_runs

if TYPE_CHECKING:
    from mnmt_eval.analysis.experts import ExpertLayer, ExpertUse, LayerSpecialisation

FAVOURITES = 4
"""Experts of each task that are printed."""


def experts(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    testset: str = "test",
    device: str | None = None,
    as_json: Json = False,
) -> None:
    """Show which experts of a mixture serve which languages, and how far they are specialised.

    The experts of each task are listed for one layer: the one whose experts tell most about the task.

    Args:
        runs: Runs, or folders of runs, of which those of mixtures of experts are shown.
        testset: The test set, whose sentences and references pass each model once, unless they did before.
        device: `cpu`, `cuda` or `cuda:0`, …; by default the first GPU, or the CPU if there is none.
        as_json: Print all numbers as JSON, with the share of each expert in the choices of each task.
    """
    require_runs("experts")
    from mnmt_eval.runs.trained_run import find_devices
    from mnmt_model.runs import find_runs, mixture_names, read_run

    name = find_devices(device)[0]
    folders = [folder for folder in find_runs(runs) if mixture_names(read_run(folder).model)]
    if not folders:
        raise EvalError(f"{runs[0]}: has no mixture of experts in any layer of its models.")
    uses = [_measure(folder, testset, name) for folder in folders]
    if as_json:
        print(json.dumps({"runs": [asdict(use) for use in uses]}, ensure_ascii=False))
    else:
        print("\n\n".join("\n".join(_lines(use)) for use in uses))


def _measure(folder: Path, testset: str, device: str) -> ExpertUse:
    from mnmt_eval.analysis.experts import read_expert_use
    from mnmt_eval.runs import count_experts, open_run

    run = open_run(folder)
    tasks = [task for task in run.data.evaluated if testset in run.data.testsets(task)]
    if len(tasks) < 2:
        number = "one task" if tasks else "no task"
        raise EvalError(f"{folder}: {number} has the test set {testset}, but at least 2 must have it.")
    for task in tasks:
        count_experts(run, testset, task, device=device)
    use = read_expert_use(folder, testset, name=folder.name)
    assert use is not None
    return use


def _lines(use: ExpertUse) -> Iterator[str]:
    """Yield the lines of a run: a table of its layers, and one of what serves the tasks."""
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
