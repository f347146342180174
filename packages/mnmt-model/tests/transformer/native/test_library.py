"""Compiling and loading the operations in C++."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from num_threads import num_threads

from mnmt_model.transformer.native import has_library, library, run, why_missing
from mnmt_model.transformer.products import Shape, can_take

needs_compiler = pytest.mark.skipif(not has_library(), reason="no C++ compiler")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder; nothing is loaded yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library._library.cache_clear()
    monkeypatch.setattr(library, "_functions", {})
    yield tmp_path / "mnmt"
    library._library.cache_clear()


def write_compiler(folder: Path, script: str) -> Path:
    compiler = folder / "c++"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    return compiler


@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="no C++ compiler")
def test_a_machine_with_a_compiler_has_the_library() -> None:
    assert has_library(), why_missing()
    assert not why_missing()


@needs_compiler
def test_the_library_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_library()
    (path,) = cache.glob("*.so")
    monkeypatch.setattr(library, "_compile", lambda *_: pytest.fail("compiled again"))
    library._library.cache_clear()
    assert has_library()
    assert list(cache.glob("*.so")) == [path]


def test_of_many_workers_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def compile_slowly(compiler: str, options: tuple[str, ...], path: Path) -> None:
        calls.append(path)
        time.sleep(0.2)
        path.touch()

    monkeypatch.setattr(library, "_compile", compile_slowly)
    path = tmp_path / "mnmt" / "operations.so"
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: library._compiled_once("c++", (), path), range(8)))
    assert paths == [path] * 8
    assert calls == [path]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 1", "exit status 1"),
        ("exec /bin/sleep 9", "timed out"),
        ("echo note >&2; echo a.cpp: error: no such flag >&2; echo more >&2; exit 1", "error: no such flag$"),
        ('for last; do :; done; [ "$last" = --version ] || echo broken > "$last"', "file too short"),
        (None, "there is no C[+][+] compiler"),
    ],
)
def test_without_a_working_compiler_torchs_operators_are_taken(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None, reason: str
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(library, "COMPILE_SECONDS", 1)
    if script is not None:
        write_compiler(tmp_path, script)
    assert not library.has_library()
    assert re.search(reason, why_missing())
    assert "\n" not in why_missing()
    assert not can_take("native", Shape("rms_norm", "float32", 1, 8, 8, 8))


def test_the_users_compiler_is_first_and_none_is_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other, clang = tmp_path / "g++", tmp_path / "clang++"
    write_compiler(tmp_path, "").rename(clang)
    shutil.copy(clang, other)
    (tmp_path / "c++").symlink_to(clang)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert library._compilers() == [str(tmp_path / "c++"), str(other)]


@needs_compiler
@pytest.mark.parametrize("has_openmp", [True, False])
def test_another_compiler_and_no_openmp_are_tried(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_openmp: bool
) -> None:
    script = "exit 1"
    if not has_openmp:
        monkeypatch.setattr(library, "_compilers", lambda: [str(tmp_path / "c++")])
        real = shutil.which("c++") or shutil.which("g++")
        script = f'for each; do [ "$each" = -fopenmp ] && exit 1; done; exec {real} "$@"'
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path, script)))
    assert has_library(), why_missing()
    x, y = torch.arange(6.0), torch.empty(6)
    run("dropout", x, x, y, 6, 1, 2**32 - 1)
    torch.testing.assert_close(y, 2 * x)


@needs_compiler
def test_a_library_cut_short_is_compiled_again(cache: Path) -> None:
    assert has_library()
    (path,) = cache.glob("*.so")
    beginning = path.read_bytes()[:100]
    # This process has the old file mapped, which must not change.
    path.unlink()
    path.write_bytes(beginning)
    check = "from mnmt_model.transformer.native import has_library; raise SystemExit(not has_library())"
    # A process that has loaded the library is given the same again.
    subprocess.run(
        [sys.executable, "-c", check], check=True, env={**os.environ, "XDG_CACHE_HOME": str(cache.parent)}
    )
    assert path.stat().st_size > 100


@needs_compiler
def test_a_cache_that_cannot_be_written_is_replaced(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(library, "gettempdir", lambda: str(tmp_path))
    assert has_library(), why_missing()
    folder = tmp_path / f"mnmt-{os.getuid()}"
    assert list(folder.glob("*.so"))
    # What others may write is not loaded.
    folder.chmod(0o777)
    library._library.cache_clear()
    assert not has_library()
    assert "written by others" in why_missing()


@needs_compiler
def test_results_do_not_depend_on_threads() -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(1000, 24, generator=generator), torch.randn(24, generator=generator)
    results = []
    for number in (1, 2, 3):
        with num_threads(number):
            y, scales = torch.empty_like(x), torch.empty(1000)
            run("rms_norm", x, weight, y, scales, 64, 1000, 24, 1e-6)
            grad_x, parts = torch.empty_like(x), torch.empty(16, 24)
            run("rms_norm_gradient", y, x, weight, scales, grad_x, parts, 64, 1000, 24)
            results.append(torch.cat([y, grad_x, parts]))
    assert all(torch.equal(result, results[0]) for result in results)
