"""mnmt-data and mnmt-eval as pip installs them, without torch and mnmt-model: what must work nevertheless."""

import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import subprocess

import pytest

import mnmt_data

WITH_TORCH = "mnmt_data.stream.torch_dataset"
MODULES = {module.name for module in pkgutil.walk_packages(mnmt_data.__path__, "mnmt_data.")}


@pytest.mark.parametrize("name", ["torch", "mnmt-model", "mnmt-moe-ext"])
def test_it_is_not_here(name):
    assert importlib.util.find_spec(name.replace("-", "_")) is None
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(name)


@pytest.mark.parametrize("module", sorted(MODULES - {"mnmt_data.__main__", WITH_TORCH}))
def test_data_needs_no_torch(module):
    importlib.import_module(module)


def test_metrics_need_no_torch():
    metrics = importlib.import_module("mnmt_eval.metrics")
    assert all(getattr(metrics, name) is not None for name in metrics.__all__)


def test_the_data_set_for_torch_says_what_it_needs():
    with pytest.raises(ImportError, match=r"mnmt-data\[torch\]"):
        importlib.import_module(WITH_TORCH)


@pytest.fixture
def files(tmp_path):
    for name, last in {"one": "gut", "two": "schlecht", "ref": "gut"}.items():
        (tmp_path / name).write_text(f"Hallo du da drüben\nDas ist wirklich {last}\n", encoding="utf-8")
    return [
        *map(str, (tmp_path / "one", tmp_path / "two")),
        "--reference",
        str(tmp_path / "ref"),
        "--task",
        "en-de",
    ]


def test_compare_works(files):
    done = subprocess.run(["mnmt-eval", "compare", *files, "--json"], check=True, capture_output=True)
    (comparison,) = json.loads(done.stdout)["comparisons"]
    values = [score["value"] for score in comparison["metrics"][0]["systems"]]
    assert values[0] == pytest.approx(100)
    assert values[1] < 100


def test_a_page_to_read_works(files, tmp_path):
    subprocess.run(["mnmt-eval", "compare", *files, "--page", tmp_path / "page"], check=True)
    assert "wirklich schlecht" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["score runs", "analyse runs", "translate --run run --task en-de"])
def test_what_needs_runs_names_the_extra_in_one_line(command):
    done = subprocess.run(["mnmt-eval", *command.split()], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "mnmt-eval[runs]" in line
