"""The ways of a run's products: measured at its start, recorded, and obeyed wherever it goes on."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fake_products import last_ways, pretend, train_with_cache_of_rank
from ranks import run_ranks
from safetensors.torch import load_file

from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, load_run, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.errors import MachineError
from mnmt_model.runs.kernels import check_ways, recorded_products
from mnmt_model.runs.run_record import read_run, write_run
from mnmt_model.training import initial_model
from mnmt_model.transformer.machine import machine
from mnmt_model.transformer.native import library
from mnmt_model.transformer.products import Products, Shape, cache, cached_products


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    return run_configs(read_study(study_file), results / "data")[1]


@pytest.fixture(scope="module")
def whole(run: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(run, folder)
    return folder


def stop(whole: Path, folder: Path, products: Products | None = None) -> None:
    """Make `folder` the run as it was after its first checkpoint, with other products if any are given."""
    shutil.copytree(whole, folder)
    for checkpoint in find_checkpoints(folder / "checkpoints")[1:]:
        shutil.rmtree(checkpoint)
    record = read_run(folder)
    assert record.kernels is not None
    ways = recorded_products(record.kernels).ways if products is None else products.ways
    kernels = {**record.kernels, "ways": {str(shape): way for shape, way in ways.items()}}
    write_run(folder, replace(record, status="running", kernels=kernels))


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[Products]:
    """The tables of the models that are built for training, in their order."""
    tables: list[Products] = []
    build = initial_model.build_model

    def spy(*args: object, products: Products, **options: object) -> object:
        tables.append(products)
        return build(*args, products=products, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(initial_model, "build_model", spy)
    return tables


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(find_checkpoints(folder / "checkpoints")[-1] / "model.safetensors")


def test_what_was_measured_is_recorded(
    run: RunConfig, tmp_path: Path, tables: list[Products], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "measure", pretend)
    train(run, tmp_path / "run")
    kernels = read_run(tmp_path / "run").kernels
    assert kernels is not None
    assert kernels["machine"] == machine()
    assert recorded_products(kernels) == tables[0]
    ways = tables[0].ways
    assert ways == last_ways(ways)
    assert {shape.kind for shape in ways} >= {"forward", "grad_input", "grad_weight", "linear"}
    assert {shape[-2:] for shape in ways if shape.kind == "linear"} >= {(16, 16), (32, 16)}


def test_a_resumed_run_obeys_its_record_rather_than_the_cache(
    run: RunConfig, whole: Path, tmp_path: Path, tables: list[Products], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(whole, tmp_path / "run")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "measure", pretend)
    train(run, tmp_path / "run")
    assert tables == [recorded_products(read_run(whole).kernels)]
    assert not (tmp_path / "cache").exists()
    for name, weight in weights(tmp_path / "run").items():
        assert torch.equal(weight, weights(whole)[name]), name


def test_another_record_is_obeyed_too(
    run: RunConfig, whole: Path, tmp_path: Path, tables: list[Products]
) -> None:
    other = Products(ways=last_ways(recorded_products(read_run(whole).kernels).ways))
    stop(whole, tmp_path / "run", other)
    train(run, tmp_path / "run")
    assert tables == [other]
    assert load_run(tmp_path / "run").model.translation_model.products == other


def test_a_machine_that_lacks_a_way_is_named_and_leaves_the_record_as_it_is(
    run: RunConfig, whole: Path, tmp_path: Path
) -> None:
    stop(whole, tmp_path / "run", Products(ways={Shape("forward", "float32", 1, 64, 16, 16): "tensor_cores"}))
    before = read_run(tmp_path / "run")
    with pytest.raises(
        MachineError, match=r"by tensor_cores, which this machine lacks; train it on one like"
    ):
        train(run, tmp_path / "run")
    assert read_run(tmp_path / "run") == before


def test_why_a_machine_cannot_compute_in_cpp_is_told(
    run: RunConfig, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library._library.cache_clear()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    stop(whole, tmp_path / "run", Products(ways={Shape("rms_norm", "float32", 1, 64, 16, 16): "native"}))
    try:
        with pytest.raises(RunError, match=r"in C\+\+, which this machine cannot: there is no .* compiler; "):
            train(run, tmp_path / "run")
    finally:
        library._library.cache_clear()


def test_operations_compiled_anew_are_told(
    run: RunConfig, whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ways = {Shape("rms_norm", "float32", 1, 64, 16, 16): "native"}
    stop(whole, tmp_path / "run", Products(ways=ways))
    record = read_run(tmp_path / "run")
    check_ways(record)
    assert not caplog.records
    check_ways(replace(record, kernels={**(record.kernels or {}), "native": "another"}))
    assert "operations in C++ were compiled anew; last digits may differ" in caplog.text


def test_a_run_of_an_older_version_takes_the_cache(
    run: RunConfig, whole: Path, tmp_path: Path, tables: list[Products]
) -> None:
    stop(whole, tmp_path / "run")
    write_run(
        tmp_path / "run", replace(read_run(tmp_path / "run"), absent=frozenset({"kernels"}), kernels=None)
    )
    cached_products.cache_clear()
    assert load_run(tmp_path / "run").model.translation_model.products == cached_products()
    train(run, tmp_path / "run")
    assert tables == [recorded_products(read_run(whole).kernels)]
    assert read_run(tmp_path / "run").kernels is not None


def test_all_ranks_take_what_the_first_measured(run: RunConfig, tmp_path: Path) -> None:
    short = replace(run, train=replace(run.train, steps=2))
    assert run_ranks(2, train_with_cache_of_rank, short, tmp_path / "run", tmp_path, logs=tmp_path) == [0, 0]
    first, second = ((tmp_path / f"products{rank}").read_text() for rank in (0, 1))
    assert first == second == repr(recorded_products(read_run(tmp_path / "run").kernels))
    assert (tmp_path / "cache0/mnmt/products.json").exists()
    assert not (tmp_path / "cache1/mnmt/products.json").exists()
