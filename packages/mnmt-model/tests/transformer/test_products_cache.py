"""Measuring products: what is chosen, stored and measured again."""

import json
import math
from collections.abc import Collection
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mnmt_model.transformer.products import (
    EXPERTS,
    SINGLE,
    Shape,
    cache,
    cached_products,
    measured_products,
    measurement,
)
from mnmt_model.transformer.products.cache import times_key
from mnmt_model.transformer.products.measurement import fastest, measure
from mnmt_model.transformer.products.ways import WAYS, can_take

FORWARD = Shape("forward", "float32", 1, 64, 16, 8)
OF_EXPERTS = Shape("experts_forward", "float32", 2, 64, 16, 8)


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Collection[Shape]]:
    """The measurements so far, of a machine on which torch's own way is always the slowest, with no cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shapes_of: list[Collection[Shape]] = []

    def pretend(shapes: Collection[Shape], **_: object) -> dict[Shape, dict[str, float]]:
        shapes_of.append(list(shapes))
        return {
            shape: {way: 1 / (1 + number) for number, way in enumerate(WAYS[shape.kind])} for shape in shapes
        }

    monkeypatch.setattr(cache, "measure", pretend)
    return shapes_of


def cache_file() -> Path:
    return cache.times_file()


def test_each_shape_is_measured_once(measurements: list[Collection[Shape]]) -> None:
    first = measured_products([FORWARD])
    assert measured_products([FORWARD]) == first
    both = measured_products([FORWARD, OF_EXPERTS])
    assert measurements == [[FORWARD], [OF_EXPERTS]]
    assert both.ways == {FORWARD: WAYS["forward"][-1], OF_EXPERTS: WAYS["experts_forward"][-1]}
    assert measured_products([OF_EXPERTS]).ways == {OF_EXPERTS: WAYS["experts_forward"][-1]}


def test_the_cache_decides(measurements: list[Collection[Shape]]) -> None:
    measured_products([FORWARD])
    stored = json.loads(cache_file().read_text())
    stored[times_key()][str(FORWARD)] |= {"native": 1.0, "onednn": 0.1}
    cache_file().write_text(json.dumps(stored))
    assert measured_products([FORWARD]).ways == {FORWARD: "onednn"}
    assert len(measurements) == 1


def test_ways_that_an_older_version_lacked_are_measured(measurements: list[Collection[Shape]]) -> None:
    measured_products([FORWARD])
    stored = json.loads(cache_file().read_text())
    stored[times_key()][str(FORWARD)] = {"torch": 1.0}
    cache_file().write_text(json.dumps(stored))
    measured_products([FORWARD])
    assert measurements == [[FORWARD], [FORWARD]]


def test_shapes_of_one_way_are_not_measured(measurements: list[Collection[Shape]]) -> None:
    shape = Shape("rms_norm", "bfloat16", 1, 64, 16, 16)
    assert measured_products([shape]).ways == {shape: "torch"}
    assert not measurements


def test_machines_and_numbers_of_threads_are_told_apart(
    measurements: list[Collection[Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_products([FORWARD])
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    measured_products([FORWARD])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    measured_products([FORWARD])
    assert len(measurements) == len(json.loads(cache_file().read_text())) == 3


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        '{"MACHINE": 7}',
        '{"MACHINE": {"forward": {}}}',
        '{"MACHINE": {"SHAPE": {}}}',
        '{"MACHINE": {"SHAPE": {"bmm": 1.0}}}',
        '{"MACHINE": {"SHAPE": {"torch": "fast"}}}',
    ],
)
def test_a_broken_cache_costs_one_measurement(measurements: list[Collection[Shape]], content: str) -> None:
    cache_file().parent.mkdir()
    cache_file().write_text(content.replace("MACHINE", times_key()).replace("SHAPE", str(FORWARD)))
    for _ in range(2):
        assert measured_products([FORWARD]).ways == {FORWARD: WAYS["forward"][-1]}
    assert measurements == [[FORWARD]]


def test_a_folder_that_cannot_be_made_costs_a_measurement(
    measurements: list[Collection[Shape]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert measured_products([FORWARD]).ways == {FORWARD: WAYS["forward"][-1]}
    assert measurements == [[FORWARD]]


def test_a_file_that_cannot_be_written_costs_a_measurement(
    measurements: list[Collection[Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write_json", full)
    assert measured_products([FORWARD]).ways == {FORWARD: WAYS["forward"][-1]}
    assert measurements == [[FORWARD]]


def test_two_reads_in_a_process_are_alike(measurements: list[Collection[Shape]]) -> None:
    cached_products.cache_clear()
    measured_products([FORWARD])
    before = cached_products()
    measured_products([OF_EXPERTS])
    assert cached_products() is before
    cached_products.cache_clear()
    assert set(before.ways) == {FORWARD}


def test_a_way_must_be_clearly_faster_than_torchs() -> None:
    shapes = (
        {"torch": 1.0, "onednn": 0.99},
        {"torch": 1.0, "onednn": 0.9},
        {"torch": 4e-5, "onednn": 1e-5},
        # The fastest saves too little for a library's; our own needs to save less.
        {"torch": 4e-5, "onednn": 1e-5, "native": 2e-5},
    )
    times = {FORWARD._replace(rows=rows): seconds for rows, seconds in enumerate(shapes)}
    assert list(fastest(times).values()) == ["torch", "onednn", "torch", "native"]


def test_a_way_that_has_gone_since_is_not_taken(
    measurements: list[Collection[Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster's machines may share the cache, and not all have a compiler."""
    measured_products([FORWARD])
    stored = json.loads(cache_file().read_text())
    stored[times_key()][str(FORWARD)] = {"torch": 1.0, "onednn": 0.5, "float32": 0.4, "native": 0.1}
    cache_file().write_text(json.dumps(stored))
    monkeypatch.setattr(cache, "can_take", lambda way, _: way in ("torch", "onednn"))
    assert measured_products([FORWARD]).ways == {FORWARD: "onednn"}
    assert len(measurements) == 1


def test_a_slow_machine_times_all_products_the_largest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next run, which would time the rest, would take other ways than the first."""
    seconds = count()
    monkeypatch.setattr(measurement, "time", SimpleNamespace(perf_counter=partial(next, seconds)))
    monkeypatch.setattr(measurement, "_race", lambda *_: {"torch": 1.0})
    shapes = [FORWARD._replace(rows=rows) for rows in range(1, 11)]
    assert [shape.rows for shape in measure(shapes, seconds=2)] == list(range(10, 0, -1))


def test_compiling_is_no_part_of_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(measurement, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    shares: list[float] = []

    def race(*arguments: object) -> dict[str, float]:
        shares.append(arguments[-1])  # type: ignore[arg-type]
        return {"torch": 1.0}

    monkeypatch.setattr(measurement, "_race", race)
    monkeypatch.setattr(measurement, "has_library", lambda: clock.__setitem__(0, 60.0))
    measure([FORWARD, OF_EXPERTS], seconds=2)
    assert shares == [1.0, 2.0]


def test_our_own_products_of_experts_need_no_margin() -> None:
    """Libraries write machine code for each new number of rows, which the measurement of one does not see."""
    times = {"torch": 1.0, "onednn": 0.95, "native": 0.99}
    assert fastest({OF_EXPERTS: times, FORWARD: times}) == {OF_EXPERTS: "native", FORWARD: "torch"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_way_of_this_machine_is_timed(dtype: str) -> None:
    kinds = (*SINGLE, "linear", *EXPERTS)
    shapes = [Shape(kind, dtype, 2, 40, 16, 8) for kind in kinds]  # type: ignore[arg-type]
    for shape, seconds in measure(shapes, seconds=0.05).items():
        assert set(seconds) == {way for way in WAYS[shape.kind] if can_take(way, shape)}
        assert all(0 <= each < math.inf for each in seconds.values())


def test_torchs_random_numbers_are_left_alone() -> None:
    state = torch.get_rng_state()
    measure([FORWARD, OF_EXPERTS], seconds=0.01)
    assert torch.equal(torch.get_rng_state(), state)
