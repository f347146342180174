"""`mnmt-data prepare` and `mnmt-data inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from mnmt_data.cli.app import Count, Json, app, say
from mnmt_data.study import read_study


@app.command
def prepare(
    study: Path,
    *,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
    workers: Annotated[int | None, Parameter(("--workers", "-j"), validator=validators.Number(gte=1))] = None,
) -> None:
    """Prepare a study's data; what is there already and has not changed is used again.

    A stopped `prepare` goes on where it was when it is started again.

    Args:
        study: The study's TOML file.
        out: Folder of the study's results; `results/NAME` by default.
        workers: Processes; as many as there are processors by default.
    """
    from mnmt_data.cli.inspection import describe, table
    from mnmt_data.prepare import prepare_study

    described = read_study(study)
    folder = out or Path("results") / described.name
    prepared = prepare_study(described, folder, report=say, workers=workers)
    print(table(describe(prepared, samples=0)))
    print(f"prepared: {prepared.folder}")


@app.command
def inspect(
    prepared: Path,
    *,
    samples: Count = 3,
    verify: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> None:
    """Show what prepared data hold: counts, what the filters dropped, and some pairs.

    Args:
        prepared: Folder of prepared data, such as results/NAME/data.
        samples: Pairs to show of each filter, and of each task's test set.
        verify: Read every file and compare it with its checksum first.
        as_json: Print JSON.
    """
    from mnmt_data.cli.inspection import describe, table
    from mnmt_data.store.prepared import open_prepared

    data = open_prepared(prepared)
    if verify:
        data.verify()
        say(f"verified: {prepared}")
    description = describe(data, samples=samples)
    print(json.dumps(description, ensure_ascii=False) if as_json else table(description))
