"""What the benchmarks say of the machine that they measured."""

from __future__ import annotations

import platform

import pytest

from benchmarks.measurement import describe_processor

X86 = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC
stepping	: 1
flags		: fpu sse2 avx avx2 avx512f avx512_bf16

processor	: 1
cpu family	: 99
"""
ARM = """\
processor	: 0
BogoMIPS	: 50.00
Features	: fp asimd aes
CPU implementer	: 0x41
CPU part	: 0xd0c
"""


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [(X86, "AMD EPYC, family 25, model 17 (avx512f)"), (ARM, "aarch64 (asimd)")],
    ids=["x86", "ARM"],
)
def test_a_processor_is_named(cpuinfo: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "aarch64")
    assert describe_processor(cpuinfo) == expected
