"""Run benchmarks/on_gpu.sh without a GPU, with an environment's `python3` whose pip has no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

OUTCOMES = {
    "tests": """ok install-wheels, skipped cuda-kernels, ok install-extension, ok install-packages,
        ok kernels, ok tests-cpu, skipped tests-mnmt-moe-ext,
        skipped tests-mnmt-model, skipped tests-mnmt-eval""",
    "sanitizer moe exchange training decoding study": """skipped sanitizer, skipped moe, skipped exchange,
        skipped training, skipped decoding, skipped study""",
}
"""The outcomes of parts, one call each."""

MOST_FILES = 8
"""That come back from a rented machine."""


def main() -> int:
    """Print the listings of all calls; return 1 if one is not as expected, else 0."""
    with TemporaryDirectory() as place:
        environment, out = make_environment(Path(place)), Path(place) / "out"
        wrong = [parts for parts, outcomes in OUTCOMES.items() if run(parts, environment) != outcomes.split()]
        files = [path.name for path in out.rglob("*") if path.is_file()]
    wrong += [f"{module}, which is not in this tree" for module in benchmarks() if not is_there(module)]
    if not 1 <= len(files) <= MOST_FILES:
        wrong.append(f"the files in OUT: {files}")
    print("\n".join(f"gpu_dry: not as expected: {each}" for each in wrong) or "gpu_dry: as expected")
    return 1 if wrong else 0


def benchmarks() -> list[str]:
    """Return the modules of parts that are skipped here."""
    script = Path("benchmarks/on_gpu.sh").read_text(encoding="utf-8")
    return re.findall(r"-m (benchmarks[\w.]+)", script)


def is_there(module: str) -> bool:
    """Return whether a module of this repository exists."""
    return Path(*module.split(".")).with_suffix(".py").exists()


def make_environment(place: Path) -> dict[str, str]:
    """Return the variables for a fresh `python3` that finds the packages of this one, and one wheel."""
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "download", "--no-deps", f"--dest={place / 'wheels'}", "cyclopts"], check=True)
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", str(place / "python")], check=True)
    (packages,) = (place / "python").glob("lib/*/site-packages")
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return os.environ | {
        "PATH": f"{place / 'python/bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "LIMIT": "1500",  # a slow machine that does other things as well
        "OUT": str(place / "out"),
        "WHEELS": str(place / "wheels"),
        "WORK": str(place / "work"),
    }


def run(parts: str, environment: dict[str, str]) -> list[str]:
    """Run the parts and return the words of their outcomes."""
    command = ["bash", "benchmarks/on_gpu.sh", *parts.split()]
    result = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    print(result.stdout, result.stderr, sep="\n", flush=True)
    outcomes = re.findall(r"^(\w+) +([\w-]+): ", result.stdout, re.MULTILINE)
    return ", ".join(" ".join(outcome) for outcome in outcomes).split() if not result.returncode else []


if __name__ == "__main__":
    sys.exit(main())
