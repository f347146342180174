"""The ways of this machine's products, stored so that each shape is measured once a machine."""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import torch

from mnmt_data.store import file_lock, write_json
from mnmt_model.transformer.products.measurement import fastest, measure
from mnmt_model.transformer.products.table import Products
from mnmt_model.transformer.products.ways import WAYS, Shape

LOCK_SECONDS = 20
"""Time to wait for another process that measures; then this one measures for itself."""

SETTINGS = (
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
)
"""Variables of the environment with which the libraries take other instructions."""

Times = dict[Shape, dict[str, float]]
"""{shape: {way: seconds}}."""

_log = logging.getLogger(__name__)


def measured_products(shapes: Collection[Shape]) -> Products:
    """Return the fastest ways of these shapes on this machine; those that the cache lacks are measured.

    A cache that cannot be read or written costs a measurement, and nothing else.
    """
    path = cache_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Processes that start together measure once, one after the other, and take the same ways.
        with file_lock(path.with_suffix(".lock"), name=path, error=TimeoutError, seconds=LOCK_SECONDS):
            times = _measure_missing(shapes, read_times())
            _write(path, times)
    except OSError as error:
        _log.info("products are measured without a cache: %s", error)
        times = _measure_missing(shapes, {})
    ways = fastest(times)
    return Products(ways={shape: ways[shape] for shape in shapes})


@cache
def cached_products() -> Products:
    """Return the ways of all shapes that were measured on this machine before the first call."""
    return Products(ways=fastest(read_times()))


def read_times() -> Times:
    """Return what was measured on this machine; nothing if the file is missing or broken."""
    try:
        stored = json.loads(cache_file().read_text(encoding="utf-8"))[machine()]
        return {Shape.parse(text): _checked(Shape.parse(text), times) for text, times in stored.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def cache_file() -> Path:
    """Return the file of measured times, in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mnmt" / "products.json"


def machine() -> str:
    """Return what the times depend on besides shapes: processor, instructions, torch and threads."""
    settings = [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]
    capability = torch.backends.cpu.get_cpu_capability()
    threads = f"{torch.get_num_threads()} threads"
    return ", ".join([_processor(), capability, f"torch {torch.__version__}", threads, *settings])


@cache
def _processor() -> str:
    """Return the processor's name and numbers; virtual machines often hide the name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    numbers = "/".join(facts.get(name, "?") for name in ("cpu family", "model", "stepping"))
    return f"{facts.get('model name', platform.machine())} {numbers}"


def _measure_missing(shapes: Collection[Shape], times: Times) -> Times:
    missing = [shape for shape in shapes if shape not in times]
    if not missing:
        return times
    start = time.perf_counter()
    measured = measure(missing, known=fastest(times))
    _log.info("measured %d products in %.1f s", len(missing), time.perf_counter() - start)
    return {**times, **measured}


def _checked(shape: Shape, times: Mapping[str, float]) -> dict[str, float]:
    if not times or not all(way in WAYS[shape.kind] and seconds > 0 for way, seconds in times.items()):
        raise ValueError(f"{shape} has other ways than {times}")
    return dict(times)


def _write(path: Path, times: Times) -> None:
    """Store the times beside those of other machines."""
    try:
        machines = json.loads(path.read_text(encoding="utf-8"))
        machines = machines if isinstance(machines, dict) else {}
    except (OSError, ValueError):
        machines = {}
    machines[machine()] = {str(shape): seconds for shape, seconds in times.items()}
    try:
        write_json(path, machines)
    except OSError as error:
        _log.info("the times of products are not stored: %s", error)
