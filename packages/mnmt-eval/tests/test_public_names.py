from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import mnmt_eval
import mnmt_eval.analysis
import mnmt_eval.compare
import mnmt_eval.metrics
import mnmt_eval.report
import mnmt_eval.rerank
import mnmt_eval.runs
import mnmt_eval.search
import mnmt_eval.translate

ROOMS = (
    mnmt_eval.analysis,
    mnmt_eval.compare,
    mnmt_eval.metrics,
    mnmt_eval.report,
    mnmt_eval.rerank,
    mnmt_eval.runs,
    mnmt_eval.search,
    mnmt_eval.translate,
)


def test_every_public_name_exists_and_none_hides_a_room() -> None:
    for package in (mnmt_eval, *ROOMS):
        for name in package.__all__:
            assert getattr(package, name) is not None
    assert not {module.name for module in iter_modules(mnmt_eval.__path__)} & set(mnmt_eval.__all__)


def test_a_public_name_is_never_the_module_that_holds_it() -> None:
    for room in ROOMS:
        for module in iter_modules(room.__path__):
            import_module(f"{room.__name__}.{module.name}")
        assert not [name for name in room.__all__ if isinstance(getattr(room, name), ModuleType)]
