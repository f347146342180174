"""The command line `mnmt-data`: its commands are in the other modules of this package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

Count = Annotated[int, Parameter(validator=validators.Number(gte=0))]
Json = Annotated[bool, Parameter("--json", negative="")]
Out = Annotated[Path, Parameter(("--out", "-o"))]

app = App(name="mnmt-data", help="Corpora to clean splits, a shared vocabulary and token shards.")


def say(line: str) -> None:
    """Tell how long work goes, on stderr."""
    print(line, file=sys.stderr, flush=True)
