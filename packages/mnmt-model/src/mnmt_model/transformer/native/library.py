"""Compiling and loading the operations in C++."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TypeAlias

import torch
import xxhash
from torch import Tensor

from mnmt_data.store import file_lock
from mnmt_model.transformer.machine import cache_folder, instructions

FOLDER = Path(__file__).parent

FLAGS = (
    *("-O3", "-march=native", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-trapping-math"),
    # Marked sums may be taken in the order of vectors; all else is computed as it is written.
    "-fopenmp-simd",
)

COMPILE_SECONDS = 120
"""A compiler that takes longer is given up."""

Argument: TypeAlias = "Tensor | int | float | None"
"""A tensor is passed by the address of its first element, None as a null address."""

_log = logging.getLogger(__name__)


def has_library() -> bool:
    """Return whether the operations could be compiled and loaded; compiles them if that was not done before.

    It takes some seconds, once a machine. A machine without a compiler has torch's own operators.
    """
    return _library().functions is not None


def why_missing() -> str:
    """Return why the operations cannot be compiled or loaded here, in a phrase; nothing if they can."""
    return _library().why_missing


def fingerprint() -> str:
    """Return what tells this machine's library from others, whose last bits may differ; nothing without one.

    It depends on the sources, the compiler and the processor's instructions.
    """
    return _library().fingerprint


def run(name: str, *arguments: Argument) -> None:
    """Call the C function `name`, of the precision of the first argument, on torch's number of threads.

    Args:
        name: Without the precision, such as "rms_norm".
        arguments: The function's, but for the number of threads, which is its last. Those of one function are
            always of the same types.
    """
    first = arguments[0]
    assert isinstance(first, Tensor)
    function = _functions.get((name, first.dtype)) or _load(name, first.dtype, arguments)
    values = [each.data_ptr() if isinstance(each, Tensor) else each for each in arguments]
    function(*values, torch.get_num_threads())


_functions: dict[tuple[str, torch.dtype], ctypes._NamedFuncPointer] = {}


def _load(name: str, dtype: torch.dtype, arguments: Sequence[Argument]) -> ctypes._NamedFuncPointer:
    """Return the C function of a precision, which takes such arguments."""
    function: ctypes._NamedFuncPointer = getattr(
        _library().functions, f"{name}_{str(dtype).removeprefix('torch.')}"
    )
    function.restype = None
    # Conversions that are known beforehand take a third of the time.
    function.argtypes = [*map(_type, arguments), ctypes.c_int64]
    _functions[name, dtype] = function
    return function


def _type(argument: Argument) -> type[ctypes.c_void_p | ctypes.c_int64 | ctypes.c_double]:
    if argument is None or isinstance(argument, Tensor):
        return ctypes.c_void_p
    return ctypes.c_double if isinstance(argument, float) else ctypes.c_int64


@dataclass(frozen=True, kw_only=True)
class _Library:
    functions: ctypes.CDLL | None = None
    fingerprint: str = ""
    why_missing: str = ""


@cache
def _library() -> _Library:
    """Return the library of this machine, compiled if the cache lacks it, or why there is none."""
    reason = "there is no C++ compiler"
    for compiler in _compilers():
        # Where the threads of torch's OpenMP cannot be had, one computes.
        for options in (("-fopenmp",), ()):
            try:
                fingerprint = _fingerprint(compiler, options)
                return _Library(functions=_loaded(compiler, options, fingerprint), fingerprint=fingerprint)
            except (OSError, subprocess.SubprocessError) as error:
                reason = f"{compiler}: {_first_line(error)}"
                _log.info("operations in C++ could not be compiled: %s", reason)
    return _Library(why_missing=reason)


def _compilers() -> list[str]:
    """Return the paths of this machine's compilers, the user's choice first."""
    names: dict[str, str] = {}
    for path in filter(None, map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
        # One is often called by several names.
        names.setdefault(os.path.realpath(path), path)
    return list(names.values())


def _first_line(error: Exception) -> str:
    """Return what is wrong, in one line: a compiler's first error."""
    printed = getattr(error, "stderr", None)
    lines = printed.strip().splitlines() if isinstance(printed, str) else []
    return next((line for line in lines if "error" in line), lines[0] if lines else str(error))


def _loaded(compiler: str, options: Sequence[str], fingerprint: str) -> ctypes.CDLL:
    """Return the library, from the cache folder or, if that cannot be written or run from, a temporary one.

    Raises:
        OSError: If neither serves.
        subprocess.SubprocessError: If it cannot be compiled.
    """
    name = f"operations-{fingerprint}.so"
    try:
        return _loaded_from(cache_folder() / name, compiler, options)
    except OSError as error:
        _log.info("operations in C++ are not stored: %s", error)
        return _loaded_from(_temporary_folder() / name, compiler, options)


def _loaded_from(path: Path, compiler: str, options: Sequence[str]) -> ctypes.CDLL:
    """Return the library at `path`, compiled if it is missing, or broken as by a power cut."""
    try:
        return ctypes.CDLL(str(_compiled_once(compiler, options, path)))
    except OSError:
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(_compiled_once(compiler, options, path)))


def _temporary_folder() -> Path:
    """Return a folder that is this user's alone, since what is in it will be run."""
    folder = Path(gettempdir()) / f"mnmt-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise PermissionError(f"{folder} may be written by others")
    return folder


def _compiled_once(compiler: str, options: Sequence[str], path: Path) -> Path:
    """Return `path`, compiled if it is missing, by one of the processes that want it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_suffix(".lock")
        with file_lock(lock, name=path, error=TimeoutError, seconds=COMPILE_SECONDS):
            if not path.exists():
                _compile(compiler, options, path)
    return path


def _fingerprint(compiler: str, options: Sequence[str]) -> str:
    """Return what the library's bytes depend on, as a short text."""
    version = _call([compiler, "--version"])
    sources = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.[ch]*"))]
    facts = [version, instructions(), *FLAGS, *options, *sources]
    return xxhash.xxh3_64_hexdigest("\0".join(facts).encode())


def _compile(compiler: str, options: Sequence[str], path: Path) -> None:
    """Compile the library, which appears as `path` when it is whole."""
    with TemporaryDirectory(dir=path.parent) as folder:
        sources = sorted(FOLDER.glob("*.cpp"))
        objects = [str(Path(folder) / f"{source.stem}.o") for source in sources]
        commands = [
            [compiler, *FLAGS, *options, "-c", str(source), "-o", target]
            for source, target in zip(sources, objects, strict=True)
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_call, commands))
        whole = Path(folder) / path.name
        # Without -fopenmp nothing is linked to, so that threads are those of torch's own OpenMP.
        _call([compiler, "-shared", *objects, "-o", str(whole)])
        whole.replace(path)


def _call(command: Sequence[str]) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMPILE_SECONDS)
    return done.stdout
