from __future__ import annotations

import subprocess
import sys
from pkgutil import iter_modules

import mnmt_eval
import mnmt_eval.runs
import mnmt_eval.translate


def test_every_public_name_exists_and_none_hides_a_room() -> None:
    for package in (mnmt_eval, mnmt_eval.runs, mnmt_eval.translate):
        for name in package.__all__:
            assert getattr(package, name) is not None
    assert not {module.name for module in iter_modules(mnmt_eval.__path__)} & set(mnmt_eval.__all__)


def test_metrics_and_the_commands_that_compare_need_no_torch() -> None:
    program = """
import sys
sys.modules["torch"] = None
import mnmt_eval.analysis, mnmt_eval.cli.analyse, mnmt_eval.cli.compare, mnmt_eval.cli.report
from mnmt_eval import metric
metric("bleu", target="de")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
