"""The parts that all benchmarks share: command line with `--smoke`, peers, timing, tables and reports."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from cyclopts import App, Parameter

PACKAGES = Path(__file__).parents[1] / "packages"

Figures = dict[str, Any]
"""What a benchmark measures, as plain data."""

Out = Annotated[Path | None, Parameter(alias="-o")]
"""The option `--out`: a JSON file for the figures."""

Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
Counts = Annotated[tuple[int, ...], Parameter(consume_multiple=True)]
Numbers = Annotated[tuple[float, ...], Parameter(consume_multiple=True)]


def run(main: Callable[..., None], *, smoke: Mapping[str, object], needs: Sequence[str] = ()) -> None:
    """Run a benchmark's command line.

    With `--smoke` the options in `smoke` take the place of the defaults: tiny sizes that show that the
    benchmark works, and nothing about speed. If a module that it cannot do without is missing, it says so and
    ends.

    Args:
        main: The benchmark; its keyword arguments are the options.
        smoke: {option: its value with `--smoke`}.
        needs: Modules without which nothing can be measured.
    """
    app = App(help=sys.modules[main.__module__].__doc__)
    app.default(main)

    @app.meta.default
    def launch(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        small: Annotated[bool, Parameter("--smoke", negative="")] = False,
    ) -> None:
        """Measure.

        Args:
            tokens: The benchmark's own options.
            small: Use tiny sizes, to see in seconds whether the benchmark works.
        """
        command, bound, _ = app.parse_args(tokens)
        if missing := [name for name in needs if importlib.util.find_spec(name) is None]:
            print(f"Skipped: {', '.join(missing)} must be installed.")
            return
        if small:
            use_one_thread()
        command(*bound.args, **(dict(smoke) if small else {}) | bound.kwargs)

    app.meta()


def use_one_thread() -> None:
    """Compute with one thread in this process and those that it starts: tiny sizes only wait for others."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@cache
def is_installed(peer: str) -> bool:
    """Return whether a module can be imported; print a line if it cannot."""
    is_there = importlib.util.find_spec(peer) is not None
    if not is_there:
        print(f"{peer} is not installed: not compared with.", flush=True)
    return is_there


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratios(peer: Sequence[float], ours: Sequence[float]) -> Figures:
    """Return how many times longer a peer took than ours in the same turn: median, lowest and highest."""
    each = [theirs / our for theirs, our in zip(peer, ours, strict=True)]
    return {"ratio": round(median(each), 2), "lowest": round(min(each), 2), "highest": round(max(each), 2)}


def print_table(rows: Sequence[Mapping[Any, object]]) -> None:
    """Print a Markdown table with a row for each mapping, and a column for each key of any of them."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    print(f"| {' | '.join(columns)} |")
    print("|--" * len(columns) + "|")
    for row in rows:
        print(f"| {' | '.join(str(row.get(column, '')) for column in columns)} |")
    print(flush=True)


LOAD = os.getloadavg()[0]
"""Processes that ran or waited, on average over the minute before the benchmark."""


def provenance(*packages: str, gpu: bool = False) -> Figures:
    """Return what figures were measured with: machine, load until now, date, and versions of the packages.

    Args:
        packages: Distributions whose versions matter.
        gpu: Whether the figures are those of a GPU.
    """
    description: Figures = {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {processor()}",
        "load_before": round(LOAD, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": {name: installed_version(name) for name in ("python", *packages)},
    }
    if gpu:
        import torch

        description["gpu"] = torch.cuda.get_device_name()
    return description


VECTORS = ("avx512f", "avx2", "avx", "sve", "asimd")
"""What /proc/cpuinfo calls vector instructions, the widest first."""


def processor() -> str:
    """Return the name of this machine's processor, its family and model, and its widest vectors."""
    try:
        return describe_processor(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        return platform.processor()


def describe_processor(cpuinfo: str) -> str:
    """Return what /proc/cpuinfo says of the first processor; "AMD EPYC" is the name of many.

    The numbers of family and model are x86's; other files have none.
    """
    lines = (line.partition(":") for line in cpuinfo.split("\n\n")[0].splitlines())
    facts = {name.strip(): value.strip() for name, _, value in lines}
    flags = facts.get("flags", facts.get("Features", "")).split()
    parts = [facts.get("model name", platform.processor())]
    parts += [
        f"{word} {facts[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if key in facts
    ]
    vectors = next((each for each in VECTORS if each in flags), "no vectors known")
    return f"{', '.join(parts)} ({vectors})"


def installed_version(package: str) -> str:
    """Return the version of a distribution, of ours that of the source, or "not installed"."""
    if package == "python":
        return platform.python_version()
    source = PACKAGES / package / "pyproject.toml"
    if source.exists():
        return str(tomllib.loads(source.read_text(encoding="utf-8"))["project"]["version"])
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def write_report(out: Path | None, what: str, figures: Mapping[str, object], description: Figures) -> None:
    """Write figures as JSON with their description; without a file, do nothing."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        report = json.loads(
            json.dumps({"what": what, **figures, **description}, default=str), parse_constant=_null
        )
        out.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _null(constant: str) -> None:
    """Stand for NaN and the infinities, which JSON cannot express."""
