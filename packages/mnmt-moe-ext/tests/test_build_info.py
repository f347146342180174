"""The extension knows how it was built."""

from __future__ import annotations

import pytest

from mnmt_moe_ext import build_info, cuda


def test_build_info() -> None:
    info = build_info()
    assert info.minimum_torch_version == "2.10"
    assert info.torch_version.startswith("2.")
    assert info.compiler
    assert bool(info.cuda_architectures) == cuda.LIBRARY.exists()


def test_build_info_is_frozen() -> None:
    with pytest.raises(AttributeError):
        build_info().compiler = "other"  # type: ignore[misc]
