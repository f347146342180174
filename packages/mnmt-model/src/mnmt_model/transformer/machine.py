"""This machine: what the speed of its computations depends on, and the folder for what was measured of it."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import torch
import xxhash

SETTINGS = (
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
)
"""Variables of the environment with which the libraries take other instructions."""


INSTRUCTION_FACTS = ("flags", "Features", "CPU implementer", "CPU part")
"""Lines of /proc/cpuinfo that name the instructions, of x86 and of ARM."""

CPUINFO = Path("/proc/cpuinfo")


def cache_folder() -> Path:
    """Return the folder of what was measured or compiled on this machine, in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mnmt"


def machine() -> str:
    """Return what the speed of products depends on besides shapes: the processor, torch and threads."""
    settings = [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]
    threads = f"{torch.get_num_threads()} threads"
    return ", ".join([instructions(), f"torch {torch.__version__}", threads, *settings])


def instructions() -> str:
    """Return the processor, and the vector instructions that torch uses on it."""
    return f"{_processor()}, {torch.backends.cpu.get_cpu_capability()}"


@cache
def _processor() -> str:
    """Return the processor's name and numbers, and a hash of its instructions.

    Virtual machines often hide the name or some instructions; ARM has no name.
    """
    try:
        lines = CPUINFO.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    numbers = "/".join(facts.get(name, "?") for name in ("cpu family", "model", "stepping"))
    known = "\0".join(facts.get(name, "") for name in INSTRUCTION_FACTS)
    name = facts.get("model name", platform.machine())
    return f"{name} {numbers} {xxhash.xxh3_64_hexdigest(known.encode())[:8]}"
