"""What tells machines apart."""

from pathlib import Path

import pytest

from mnmt_model.transformer import machine

ARM = "Features: fp asimd sve\nCPU implementer: 0x41\nCPU architecture: 8\nCPU part: 0xd40\n\nprocessor: 1"
X86 = "model name: A\ncpu family: 6\nmodel: 143\nstepping: 8\nflags: sse avx avx512f\n"


def named(cpuinfo: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = folder / "cpuinfo"
    path.write_text(cpuinfo)
    monkeypatch.setattr(machine, "CPUINFO", path)
    machine._processor.cache_clear()
    try:
        return machine.instructions()
    finally:
        machine._processor.cache_clear()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X86, X86.replace(" avx512f", "")),
        (X86, X86.replace("143", "85")),
        (ARM, ARM.replace(" sve", "")),
        (ARM, ARM.replace("0xd40", "0xd0c")),
        (ARM, ARM.replace("0x41", "0xc0")),
    ],
)
def test_processors_with_other_instructions_have_other_names(
    one: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = named(one, tmp_path, monkeypatch)
    assert first == named(one, tmp_path, monkeypatch)
    assert first != named(other, tmp_path, monkeypatch)
