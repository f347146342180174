"""The ways of this machine's products, stored so that each shape is measured once a machine."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from mnmt_data.store import file_lock, write_json
from mnmt_model.transformer.machine import cache_folder, machine
from mnmt_model.transformer.native import fingerprint
from mnmt_model.transformer.products.measurement import Work, fastest, measure
from mnmt_model.transformer.products.table import Products
from mnmt_model.transformer.products.ways import WAYS, Kind, Shape, can_take

LOCK_SECONDS = 20
"""Time to wait for another process that measures; then this one measures for itself."""

Times = dict[Shape, dict[str, float]]
"""{shape: {way: seconds}}."""

_log = logging.getLogger(__name__)


def measured_products(shapes: Collection[Shape], works: Mapping[Kind, Work] | None = None) -> Products:
    """Return the fastest ways of these shapes on this machine; those that the cache lacks are measured.

    A cache that cannot be read or written costs a measurement, and nothing else.

    Args:
        shapes: The shapes.
        works: What computes the operations among them that are no products.
    """
    path = times_file()
    # Whoever holds the lock shall not compile, which takes longer than the others wait.
    fingerprint()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Processes that start together measure once, one after the other, and take the same ways.
        with file_lock(path.with_suffix(".lock"), name=path, error=TimeoutError, seconds=LOCK_SECONDS):
            times = _measure_missing(shapes, works, read_times())
            _write(path, times)
    except OSError as error:
        _log.info("products are measured without a cache: %s", error)
        times = _measure_missing(shapes, works, {})
    possible = {shape: _possible(shape, times[shape]) for shape in shapes if shape in times}
    ways = fastest(possible)
    return Products(ways={shape: _only_way(shape) or ways[shape] for shape in shapes})


@cache
def cached_products() -> Products:
    """Return the ways of all shapes that were measured on this machine before the first call."""
    return Products(ways=fastest(read_times()))


def read_times() -> Times:
    """Return what was measured on this machine; nothing if the file is missing or broken."""
    try:
        stored = json.loads(times_file().read_text(encoding="utf-8"))[times_key()]
        return {Shape.parse(text): _checked(Shape.parse(text), times) for text, times in stored.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def times_key() -> str:
    """Return what the times depend on besides shapes: the machine, and how its operations were compiled."""
    return f"{machine()}, C++ {fingerprint() or 'none'}"


def times_file() -> Path:
    """Return the file of measured times."""
    return cache_folder() / "products.json"


def _measure_missing(shapes: Collection[Shape], works: Mapping[Kind, Work] | None, times: Times) -> Times:
    missing = [shape for shape in shapes if not _is_measured(shape, times.get(shape, {}))]
    if not missing:
        return times
    start = time.perf_counter()
    measured = measure(missing, works=works, known=fastest(times))
    seconds = time.perf_counter() - start
    _log.info("measured %d products in %.1f s", len(measured), seconds)
    return {**times, **measured}


def _is_measured(shape: Shape, seconds: Collection[str]) -> bool:
    """Return whether all ways that this machine has were measured, or there is but one."""
    return _only_way(shape) is not None or all(way in seconds for way in _possible_ways(shape))


def _only_way(shape: Shape) -> str | None:
    """Return the way of a shape of which this machine has no other, which needs no measurement."""
    ways = _possible_ways(shape)
    return ways[0] if len(ways) == 1 else None


def _possible(shape: Shape, times: Mapping[str, float]) -> dict[str, float]:
    """Return the times of the ways that this machine still has: a compiler, say, may have gone."""
    return {way: seconds for way, seconds in times.items() if can_take(way, shape)}


def _possible_ways(shape: Shape) -> list[str]:
    return [way for way in WAYS[shape.kind] if can_take(way, shape)]


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
    machines[times_key()] = {str(shape): seconds for shape, seconds in times.items()}
    try:
        write_json(path, machines)
    except OSError as error:
        _log.info("the times of products are not stored: %s", error)
