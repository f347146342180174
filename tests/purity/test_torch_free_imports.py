"""What must work without torch, in an environment that has none."""

import importlib
import importlib.util
import pkgutil

import pytest

import mnmt_data


def modules_of(package):
    return [
        package.__name__,
        *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    ]


def test_torch_is_not_here():
    assert importlib.util.find_spec("torch") is None


@pytest.mark.parametrize("name", modules_of(mnmt_data))
def test_data_imports_without_torch(name):
    importlib.import_module(name)


def test_bleu_is_computed_without_torch():
    importlib.import_module("mnmt_eval.metrics")
