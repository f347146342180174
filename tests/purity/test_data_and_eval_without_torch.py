"""What must work without torch, in an environment that has none."""

import importlib
import importlib.util
import pkgutil

import pytest

import mnmt_data

WITH_TORCH = "mnmt_data.stream.torch_dataset"
MODULES = {module.name for module in pkgutil.walk_packages(mnmt_data.__path__, "mnmt_data.")}


def test_torch_is_not_here():
    assert importlib.util.find_spec("torch") is None


@pytest.mark.parametrize("module", sorted(MODULES - {"mnmt_data.__main__", WITH_TORCH}))
def test_data_needs_no_torch(module):
    importlib.import_module(module)


def test_metrics_need_no_torch():
    importlib.import_module("mnmt_eval.metrics")


def test_the_data_set_for_torch_says_what_it_needs():
    with pytest.raises(ImportError, match=r"install mnmt-data\[torch\]"):
        importlib.import_module(WITH_TORCH)
