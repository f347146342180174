"""`mnmt-model plan`: what training takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_data.study import read_study
from mnmt_model.cli.train import Have, study_runs
from mnmt_model.errors import RunError
from mnmt_model.planning.presets import PRESET_NAMES, preset
from mnmt_model.planning.workload import PlanConfig
from mnmt_model.sweep.schedule import Machines


def plan(
    study: Path | None = None,
    *,
    preset_name: Annotated[str | None, Parameter("--preset")] = None,
    options: Annotated[PlanConfig, Parameter("*")] = PlanConfig(),  # noqa: B008 - it is frozen
    machines: Annotated[Machines, Parameter("*")] = Machines(),  # noqa: B008 - it is frozen
    have: Have = (),
    measure: bool = True,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Print what training takes, before anything is trained: parameters, FLOPs, memory and time.

    Plan a preset, part by part, or every run of a study whose data are prepared. Times of a study's runs come
    from a measurement of this machine, of about two seconds, unless --flops-per-second gives a rate.

    Args:
        study: The study's TOML file.
        preset_name: A published model in place of a study, such as fernandes-l12-d1024.
        options: Assumptions.
        machines: What a study is trained on.
        have: A run table (CSV) whose runs are not trained again; may be given several times.
        measure: Measure steps of a study on this machine, for the time.
        out: Folder of the study's results; `results/NAME` by default.
        as_json: Print JSON.
    """
    if (study is None) == (preset_name is None):
        raise RunError(f"plan takes a study or --preset NAME; the presets are {', '.join(PRESET_NAMES)}")
    if preset_name is not None:
        _plan_preset(preset_name, options, as_json=as_json)
    elif study is not None:
        _plan_study(study, out, options, machines, have=have, measure=measure, as_json=as_json)


def _plan_preset(name: str, options: PlanConfig, *, as_json: bool) -> None:
    from mnmt_model.planning.plan import plan_model
    from mnmt_model.planning.plan_text import model_json, model_text

    result = plan_model(name, preset(name), options)
    print(json.dumps(model_json(result)) if as_json else model_text(result))


def _plan_study(
    path: Path,
    out: Path | None,
    options: PlanConfig,
    machines: Machines,
    *,
    have: Sequence[Path],
    measure: bool,
    as_json: bool,
) -> None:
    runs, folder = study_runs(path, out, have=have)
    if measure:
        print("measuring steps on this machine, some seconds", file=sys.stderr, flush=True)
    from mnmt_model.sweep.study_plan import plan_study, study_json
    from mnmt_model.sweep.study_plan_text import study_text

    data = folder.parent / "data"
    result = plan_study(read_study(path), data, options, machines, runs=runs, measure=measure)
    print(json.dumps(study_json(result)) if as_json else study_text(result))
