"""The CUDA kernels as the compiler leaves them: registers, spills, shared memory, occupancy, launches.

Claim: no kernel spills, and a small batch fills a GPU. No peer. Cited in docs/moe/measured.md.

No GPU is needed, and nothing is timed: none of these figures is a speed. nvcc compiles the kernels, and
`-Xptxas -v` says what each takes. Their launches are those of the host code itself: it is compiled for the
emulator (packages/mnmt-moe-ext/tests/emulator), which notes kernel, blocks, threads and shared memory. From
both, CUDA's own cuda_occupancy.h computes how many blocks a multiprocessor of an A100 (sm_80) or an H100
(sm_90a) holds at a time. Needs nvcc and g++. Of the kernels of another revision it prints registers and
spills alone, since the emulator goes with these.

    python -m benchmarks.moe.kernels --out benchmarks/results/moe/kernels.json
    python -m benchmarks.moe.kernels --revision 386759d --out benchmarks/results/moe/kernels_before.json
"""

from __future__ import annotations

import ctypes
import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from cyclopts import Parameter

from benchmarks.measurement import (
    PACKAGES,
    Counts,
    Figures,
    Names,
    Out,
    print_table,
    provenance,
    run,
    write_report,
)

EXTENSION = PACKAGES / "mnmt-moe-ext"
SOURCES = "csrc"
KERNELS = EXTENSION / SOURCES / "cuda"
EMULATOR = EXTENSION / "tests" / "emulator"
ARCHITECTURES = {"80": "sm_80", "90": "sm_90a"}
WARPS_PER_MULTIPROCESSOR = 64
SOMEWHERE = 16  # an address that nothing reads
FUNCTION = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)a?'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def main(
    *,
    sources: Names = ("gate", "layout", "rows"),
    architectures: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = tuple(ARCHITECTURES),
    experts: Counts = (8, 64, 256, 512, 2048, 4096),
    top_k: Counts = (2, 8),
    tokens: int = 1024,
    d_model: int = 1024,
    revision: str | None = None,
    out: Out = None,
) -> None:
    """Print the launches of a layer for each number of experts, and the kernels that spill.

    Args:
        sources: Files of csrc/cuda to compile.
        architectures: 80 for an A100, 90 for an H100.
        experts: Numbers of experts whose launches are noted.
        top_k: Numbers of choices of a token.
        tokens: Tokens of the one group.
        d_model: Width of the rows, in bfloat16.
        revision: Compile the kernels of this commit, and note no launches; by default those that are here.
        out: JSON file for the figures.
    """
    missing = [tool for tool in ("nvcc", "g++", "c++filt") if shutil.which(tool) is None]
    if missing:
        print(f"Skipped: {', '.join(missing)} must be installed.")
        return
    layers = [Layer(tokens, count, choices, d_model) for count, choices in product(experts, top_k)]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        place = KERNELS if revision is None else kernels_at(revision, folder)
        kernels = [
            kernel
            for source, architecture in product(sources, architectures)
            for kernel in compile_kernels(place / f"{source}.cu", architecture, folder)
        ]
        rows = launch_rows(layers, kernels, folder) if revision is None else []
    if rows:
        print_table(rows)
    print_registers(kernels)
    print_spills(kernels)
    figures: Figures = {"nvcc": nvcc_version(), "kernels": [describe(kernel) for kernel in kernels]}
    if revision is None:
        what = "registers, spills and occupancy of the CUDA kernels, by ptxas and cuda_occupancy.h"
        write_report(out, what, figures | {"launches": rows}, provenance("torch"))
    else:
        what = "registers and spills of the CUDA kernels of a revision, by ptxas"
        write_report(out, what, {"revision": revision} | figures, provenance("torch"))


def kernels_at(revision: str, folder: Path) -> Path:
    """Write the sources of a commit into a folder, and return where its kernels are."""
    command = ["git", "archive", revision, SOURCES]
    archive = subprocess.run(command, cwd=EXTENSION, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
        sources.extractall(folder, filter="data")
    return folder / SOURCES / "cuda"


@dataclass(frozen=True)
class Kernel:
    """A kernel as ptxas leaves it."""

    kernel: str
    architecture: str
    registers: int
    spill_bytes: int
    """Stored and loaded."""
    static_shared: int


def compile_kernels(source: Path, architecture: str, folder: Path) -> list[Kernel]:
    """Compile a file for one architecture; return its kernels."""
    import torch

    target = ARCHITECTURES[architecture]
    command = ["nvcc", "-O3", "-std=c++17", f"-gencode=arch={target.replace('sm', 'compute')},code={target}"]
    command += ["-Xptxas=-v", "-DUSE_CUDA", "-DTORCH_TARGET_VERSION=0x020a000000000000ULL"]
    command += [f"-I{Path(torch.__file__).parent / 'include'}", "-c", str(source)]
    output = subprocess.run(
        [*command, "-o", str(folder / "kernels.o")], check=True, capture_output=True, text=True
    )
    return list(read_ptxas(output.stderr))


def read_ptxas(output: str) -> Iterator[Kernel]:
    """Yield the kernels that ptxas describes."""
    _, *parts = FUNCTION.split(output)
    for symbol, architecture, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        spills, registers, shared = SPILLS.search(text), REGISTERS.search(text), SHARED.search(text)
        assert spills is not None
        assert registers is not None
        yield Kernel(
            kernel=symbol,
            architecture=architecture,
            registers=int(registers[1]),
            spill_bytes=int(spills[1]) + int(spills[2]),
            static_shared=int(shared[1]) if shared else 0,
        )


def launch_rows(layers: Sequence[Layer], kernels: Sequence[Kernel], folder: Path) -> list[Figures]:
    """Return a row for each launch of the layers' operators."""
    library = compile_host_code(folder)
    launches = [launch for layer in layers for launch in layer_launches(library, layer)]
    return with_resources(launches, kernels, folder)


def compile_host_code(folder: Path) -> ctypes.CDLL:
    """Compile the host code with the emulator, for launches to be noted."""
    library = folder / "host.so"
    sources = [str(EMULATOR / name) for name in ("kernels.cpp", "fibers.cpp")]
    includes = ["-DMNMT_MOE_EMULATED", f"-I{EMULATOR}", f"-I{KERNELS}"]
    command = ["g++", "-std=c++17", "-fPIC", "-shared", *includes, *sources, "-o", str(library)]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.record_launches()
    loaded.recorded_launches.restype = ctypes.c_char_p
    return loaded


@dataclass(frozen=True)
class Layer:
    """The sizes of a mixture, with float32 logits and bfloat16 rows."""

    tokens: int
    experts: int
    top_k: int
    d_model: int

    @property
    def capacity(self) -> int:
        """Slots of an expert, one for each choice if all are chosen equally often."""
        return 4 * -(-self.tokens * self.top_k // (4 * self.experts))


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel by an operator."""

    experts: int
    top_k: int
    operator: str
    kernel: str
    blocks: int
    threads: int
    dynamic_shared: int


def layer_launches(library: ctypes.CDLL, layer: Layer) -> Iterator[Launch]:
    """Yield the launches of a layer's operators, forward and backward."""
    for operator, arguments in operators(layer).items():
        getattr(library, operator)(*map(to_argument, arguments))
        for line in library.recorded_launches().decode().splitlines():
            kernel, *numbers = line.split()
            yield Launch(layer.experts, layer.top_k, operator, kernel, *map(int, numbers))


def operators(layer: Layer) -> Mapping[str, Sequence[Any]]:
    """Return the arguments of each operator as tests/emulator/kernels.cpp takes them, without memory."""
    shape = (1, layer.tokens, layer.experts, layer.top_k)
    gate = (*shape, 0, *[None] * 6, 0, layer.capacity, 0, 0.5, 0, layer.capacity, *[None] * 8)
    rows = (layer.tokens, layer.d_model, layer.top_k, 1)
    return {
        "top_k_gate": gate,
        "route_to_bins": (*gate, None, None),
        "route_ragged": (*gate, None, SOMEWHERE),
        "capacity_layout": (*shape, None, None, None, layer.capacity, layer.capacity, None, None),
        "ragged_layout": (*shape, None, None, None, layer.capacity, None, None),
        "dispatch": (*rows, None, None, None, layer.experts, layer.capacity, None),
        "combine": (*rows, None, None, None, layer.experts * layer.capacity, None),
        "combine_backward": (*rows, *[None] * 5, layer.experts, layer.capacity, None, None),
        "top_k_gate_backward": (*shape, 0, *[None] * 8, 0, None),
    }


def to_argument(value: int | float | None) -> Any:
    """Return the argument of a C function: int64, double, or null."""
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


def with_resources(launches: Sequence[Launch], kernels: Sequence[Kernel], folder: Path) -> list[Figures]:
    """Return a row for each launch, with the resources of its kernel and its occupancy."""
    by_name = {(kernel.kernel, kernel.architecture): kernel for kernel in kernels}
    pairs = [
        (launch, by_name[launch.kernel, architecture])
        for launch, architecture in product(launches, ARCHITECTURES)
        if (launch.kernel, architecture) in by_name
    ]
    blocks = iter(blocks_per_multiprocessor(pairs, folder))
    rows = {launch: describe(launch) for launch in launches}
    for launch, kernel in pairs:
        resident = next(blocks)
        warps = resident * -(-launch.threads // 32)
        rows[launch][f"registers sm_{kernel.architecture}"] = kernel.registers
        rows[launch][f"spills sm_{kernel.architecture}"] = kernel.spill_bytes
        rows[launch][f"resident sm_{kernel.architecture}"] = resident
        rows[launch][f"occupancy sm_{kernel.architecture}"] = round(warps / WARPS_PER_MULTIPROCESSOR, 2)
    return list(rows.values())


def blocks_per_multiprocessor(pairs: Sequence[tuple[Launch, Kernel]], folder: Path) -> list[int]:
    """Return how many blocks of each launch a multiprocessor holds at a time, as CUDA counts them."""
    program = folder / "occupancy"
    source = Path(__file__).with_name("occupancy.cpp")
    subprocess.run(["nvcc", "-cudart", "none", str(source), "-o", str(program)], check=True)
    numbers = [
        (kernel.architecture, kernel.registers, kernel.static_shared, launch.dynamic_shared, launch.threads)
        for launch, kernel in pairs
    ]
    lines = "\n".join(" ".join(map(str, line)) for line in numbers)
    answer = subprocess.run([str(program)], input=lines, check=True, stdout=subprocess.PIPE, text=True)
    return [int(line) for line in answer.stdout.splitlines()]


def describe(record: Kernel | Launch) -> Figures:
    """Return the fields of a record, with a name that can be read."""
    return asdict(record) | {"kernel": short_name(record.kernel)}


def short_name(symbol: str) -> str:
    """Return a kernel's name and its template's arguments."""
    name = subprocess.run(["c++filt", symbol], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    name = re.sub(r"^void |mnmt_moe::|__nv_", "", name)
    return re.sub(r"\(.*\)$", "", name)


def print_registers(kernels: Sequence[Kernel]) -> None:
    """Print for each architecture the most registers of a thread."""
    for architecture in dict.fromkeys(kernel.architecture for kernel in kernels):
        most = max(kernel.registers for kernel in kernels if kernel.architecture == architecture)
        print(f"sm_{architecture}: at most {most} registers a thread")


def print_spills(kernels: Sequence[Kernel]) -> None:
    """Print the kernels that spill registers to memory."""
    spills = [kernel for kernel in kernels if kernel.spill_bytes]
    print(f"{len(spills)} of {len(kernels)} kernels spill registers.")
    for kernel in spills:
        print(f"sm_{kernel.architecture} {short_name(kernel.kernel)}: {kernel.spill_bytes} bytes")


def nvcc_version() -> str:
    """Return the release of nvcc."""
    text = subprocess.run(["nvcc", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    release = re.search(r"release ([\d.]+)", text)
    return release[1] if release else "unknown"


if __name__ == "__main__":
    run(
        main,
        smoke={"sources": ("layout",), "architectures": ("90",), "experts": (8,), "top_k": (2,)},
        needs=("torch",),
    )
