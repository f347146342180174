"""What must work without torch, in an environment that has none."""

import importlib
import importlib.util
import pkgutil

import pytest

import mnmt_data

DATA_MODULES = [module.name for module in pkgutil.walk_packages(mnmt_data.__path__, "mnmt_data.")]


def test_torch_is_not_here():
    assert importlib.util.find_spec("torch") is None


@pytest.mark.parametrize("module", [*DATA_MODULES, "mnmt_eval.metrics"])
def test_imports(module):
    importlib.import_module(module)
