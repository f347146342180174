"""`mnmt-model plan`: the cost of training."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_data.cli.console import Jobs
from mnmt_data.study import read_study
from mnmt_model.cli.train import Have, study_runs
from mnmt_model.errors import RunError
from mnmt_model.planning.plan import model_json, model_text
from mnmt_model.planning.presets import PRESET_NAMES, preset


def plan(
    study: Path | None = None,
    *,
    preset_name: Annotated[str | None, Parameter("--preset")] = None,
    vocab_size: int | None = None,
    jobs: Jobs = None,
    have: Have = (),
    measure: bool = True,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Print the cost of training in advance: parameters, FLOPs, memory and time.

    Plan every run of a study whose data are prepared, with times and memory from steps on this machine, in
    about two seconds. Or plan a published model, part by part, without time and activations.

    Args:
        study: The study's TOML file.
        preset_name: A published model instead of a study, such as fernandes-l12-d1024.
        vocab_size: Tokens of the published model's target vocabulary.
        jobs: Runs of the study to train at a time; one for each GPU or core by default.
        have: A run table (CSV) whose runs are not trained again; may be given several times.
        measure: Measure steps of a study on this machine, for time and memory.
        out: Folder of the study's results; `results/NAME` by default.
        as_json: Print JSON.
    """
    if (study is None) == (preset_name is None):
        raise RunError(f"plan takes a study or --preset NAME; the presets are {', '.join(PRESET_NAMES)}")
    if preset_name is not None:
        _plan_preset(preset_name, vocab_size, as_json=as_json)
    elif study is not None:
        _plan_study(study, out, jobs, have=have, measure=measure, as_json=as_json)


def _plan_preset(name: str, vocab_size: int | None, *, as_json: bool) -> None:
    model = preset(name)
    if vocab_size is not None:
        model = replace(model, vocab_size=vocab_size)
    try:
        print(json.dumps(model_json(name, model)) if as_json else model_text(name, model))
    except ValueError as error:
        raise RunError(str(error)) from None


def _plan_study(
    path: Path, out: Path | None, jobs: int | None, *, have: Sequence[Path], measure: bool, as_json: bool
) -> None:
    runs, folder = study_runs(path, out, have=have)
    if measure:
        print("measuring steps on this machine, some seconds", file=sys.stderr, flush=True)
    from mnmt_model.sweep.study_plan import plan_study, study_json
    from mnmt_model.sweep.study_plan_text import study_text

    data = folder.parent / "data"
    result = plan_study(read_study(path), data, jobs=jobs, runs=runs, measure=measure)
    print(json.dumps(study_json(result)) if as_json else study_text(result))
