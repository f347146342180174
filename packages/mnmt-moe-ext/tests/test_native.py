"""The extension reports how it was built, and names missing parts."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import mnmt_moe_ext
from mnmt_moe_ext import build_info, is_available, native, route
from mnmt_moe_ext.__main__ import main

# Where the compiler left nothing; an editable installation would find its operators elsewhere.
NOT_COMPILED = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]

import torch
from mnmt_moe_ext import build_info, dispatch, expert_capacity, is_available, reference, route

assert not is_available(torch.device("cpu"))
logits = torch.tensor([[[1.0, 3.0, 2.0]]])
assert expert_capacity(num_tokens=8, num_experts=2) == 8
routing, layout = reference.route(logits, capacity=4)
print(routing.experts.tolist())
for function in (
    lambda: route(logits, capacity=4),
    lambda: dispatch(logits, layout),
    build_info,
):
    try:
        function()
    except RuntimeError as error:
        print(error)
"""


def test_build_info() -> None:
    info = build_info()
    assert info.minimum_torch_version == "2.10"
    assert info.torch_version.startswith("2.")
    assert info.compiler


def test_build_info_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build_info().compiler = "other"  # type: ignore[misc]


def test_no_folder_of_the_build_is_named_in_it() -> None:
    build = Path(native._native.__file__).read_bytes()
    for folder in (Path(__file__).parents[1], Path(torch.__file__).parent):
        assert str(folder).encode() not in build


def test_available_devices() -> None:
    assert is_available(torch.device("cpu"))
    assert is_available(torch.device("cuda", 1)) == native.CUDA_KERNELS_LOADED
    assert not is_available(torch.device("meta"))


def test_without_a_compiler_only_the_reference_works(tmp_path: Path) -> None:
    package = Path(mnmt_moe_ext.__file__).parent
    shutil.copytree(package, tmp_path / "mnmt_moe_ext", ignore=shutil.ignore_patterns("*.so"))
    finished = subprocess.run(
        [sys.executable, "-c", NOT_COMPILED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert finished.stderr == ""
    routed, *errors = finished.stdout.splitlines()
    assert routed == "[[[1, 2]]]"
    assert len(errors) == 3
    for error in errors:
        assert "no compiled operators for cpu" in error
        assert error.endswith(native.BUILD_COMMAND)


def test_missing_cuda_kernels_name_the_build_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "CUDA_KERNELS_LOADED", False)
    with pytest.raises(RuntimeError, match=re.escape("cmake.define.MNMT_MOE_CUDA=ON")):
        native.require(torch.device("cuda"))


def test_other_devices_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"the CPU and for CUDA, but not for meta\.$"):
        route(torch.zeros(1, 2, 3, device="meta"), capacity=4)


def test_the_command_prints_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    version, operators, *details = capsys.readouterr().out.splitlines()
    assert version == f"mnmt-moe-ext {mnmt_moe_ext.__version__}"
    assert operators.startswith("compiled operators: cpu")
    assert f"compiler: {build_info().compiler}" in details
