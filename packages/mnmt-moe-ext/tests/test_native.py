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
    assert not is_available(torch.device("meta"))


@pytest.mark.parametrize(
    ("architectures", "gpus"),
    [
        ("", ""),
        ("80-real", "8.0 8.6 8.9"),
        ("86-real", "8.6 8.9"),
        ("90", "9.0 10.0 10.3 12.0"),
        ("90a-real 90a-virtual", "9.0"),
        ("100f-real", "10.0 10.3"),
        ("80-real 90-virtual", "8.0 8.6 8.9 9.0 10.0 10.3 12.0"),
        ("80-real 90-real 100-real 120-real 120-virtual", "8.0 8.6 8.9 9.0 10.0 10.3 12.0"),
        ("native", "7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0"),
    ],
)
def test_gpus_on_which_code_runs(architectures: str, gpus: str) -> None:
    some = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)]
    able = [f"{major}.{minor}" for major, minor in some if native.serves(architectures, (major, minor))]
    assert able == gpus.split()


def test_a_gpu_of_another_capability_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    built = build_info()
    monkeypatch.setattr(native, "CUDA_KERNELS_LOADED", True)
    monkeypatch.setattr(
        native, "build_info", lambda: dataclasses.replace(built, cuda_architectures="90-real")
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    device = torch.device("cuda", 123)
    assert not is_available(device)
    with pytest.raises(RuntimeError, match=r"for 90-real, and this GPU is of 8\.6; .*ARCHITECTURES=86$"):
        native.require(device)


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
