"""`mnmt-data prepare` and `mnmt-data inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_data.cli.app import Count, Json, app, say
from mnmt_data.study import read_study


@app.command
def prepare(study: Path, *, out: Annotated[Path | None, Parameter(("--out", "-o"))] = None) -> None:
    """Prepare a study's data; what is there already and has not changed is used again.

    Args:
        study: the study's TOML file.
        out: folder of the study's results; `results/NAME` by default.
    """
    from mnmt_data.inspection import describe, table
    from mnmt_data.prepare import prepare_study

    described = read_study(study)
    prepared = prepare_study(described, out or Path("results") / described.name, report=say)
    print(table(describe(prepared, samples=0)))
    print(f"prepared: {prepared.folder}")


@app.command
def inspect(prepared: Path, *, samples: Count = 3, as_json: Json = False) -> None:
    """Show what prepared data hold: counts, what the filters dropped, and some pairs.

    Args:
        prepared: folder of prepared data, such as results/NAME/data.
        samples: test pairs of each task to show.
        as_json: print JSON.
    """
    from mnmt_data.inspection import describe, table
    from mnmt_data.prepared import open_prepared

    description = describe(open_prepared(prepared), samples=samples)
    print(json.dumps(description, ensure_ascii=False) if as_json else table(description))
