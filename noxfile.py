"""Everything this repository checks, a session each: `nox -l` lists them, `nox -s NAME` runs one."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
PIPELINE = ("data", "model", "eval", "laws")
PACKAGES = (*PIPELINE, "moe-ext")
SUITES = (*PACKAGES, "integration")
# Extras of ours that a suite tests too.
OUR_EXTRAS = {"model": ["moe-ext"], "eval": ["model", "moe-ext"]}
SOURCES = [f"packages/mnmt-{package}/src" for package in PACKAGES]
BUILD_REQUIREMENTS = ("torch", "scikit-build-core", "pybind11", "cmake", "ninja")

# Makes torch, oneDNN and MKL take the kernels for processors without AVX, which round other sums.
SSE41 = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}

RESUMED = "test_killed_and_resumed_equals_never_stopped"
EMULATED = [
    "tests/transformer/test_architectures.py",
    "tests/transformer/test_loss.py",
    "tests/transformer/test_modules.py",
    f"tests/training/test_parallel.py::{RESUMED}",
    f"tests/training/test_trainer.py::{RESUMED}",
]

# Every pip obeys the pins, those of isolated builds too. A file: address may hold spaces.
os.environ["PIP_CONSTRAINT"] = os.environ["PIP_BUILD_CONSTRAINT"] = (ROOT / "constraints.txt").as_uri()
# Where a build is not isolated, pip refuses pins for it.
NOT_ISOLATED = {"PIP_BUILD_CONSTRAINT": ""}


@nox.session
def lint(session: nox.Session) -> None:
    """Check the style of Python and C++, names and docstrings, and who may import whom."""
    session.install("--group=lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("python", ".ci/check_style.py")
    native = Path("packages/mnmt-moe-ext/csrc").rglob("*.*")
    session.run("clang-format", "--dry-run", "--Werror", *map(str, native))
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join(SOURCES)})


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of every package, strictly."""
    install(session, PIPELINE, "--group=types")
    session.run("mypy", *SOURCES, "benchmarks", "studies", "noxfile.py", ".ci")


@nox.session
@nox.parametrize("suite", SUITES, ids=SUITES)
def tests(session: nox.Session, suite: str) -> None:
    """Run all tests, warnings as errors, an environment a package; pytest gets what follows `--`."""
    if suite == "integration":
        install(session, PACKAGES, "--group=test", f"--group={folder('data')}/pyproject.toml:trainers")
        run_pytest(session, "tests/integration", report="integration")
    else:
        install(session, [suite, *OUR_EXTRAS.get(suite, ())], *test_groups(suite))
        session.chdir(folder(suite))
        run_pytest(session, report=suite)


@nox.session(venv_backend="none")
def integration(session: nox.Session) -> None:
    """Run tests(integration): the four commands on a tiny study, killed and resumed, and wrong inputs."""
    session.notify("tests(integration)", session.posargs)


@nox.session
def emulated(session: nox.Session) -> None:
    """Test models against their oracles, and resumed runs, as on a processor with SSE4.1 and no AVX."""
    install(session, ["model", *OUR_EXTRAS["model"]], *test_groups("model"))
    session.chdir(folder("model"))
    run_pytest(session, *EMULATED, report="emulated", env=SSE41)


@nox.session
def browser(session: nox.Session) -> None:
    """Drive the reports' pages in a real browser, the system's Chromium, installed where that is possible."""
    install(session, ["laws", "eval", *OUR_EXTRAS["eval"]], *test_groups("laws"), "playwright")
    install_packages(session, "chromium", programs=("chromium", "chromium-browser", "google-chrome"))
    for package in ("laws", "eval"):
        session.chdir(ROOT / folder(package))
        run_pytest(session, "-m", "browser", "tests/report/browser", report=f"browser-{package}")


@nox.session
def slurm(session: nox.Session) -> None:
    """Prepare and train through a real Slurm on this machine, of Debian's packages, installed if possible."""
    install(session, ["model", *OUR_EXTRAS["model"]], *test_groups("data"), *test_groups("model"))
    install_packages(session, "slurm-wlm", "munge", programs=("slurmctld", "munged"))
    for package, tests in (("data", "tests/prepare/test_slurm.py"), ("model", "tests/sweep/test_cluster.py")):
        session.chdir(ROOT / folder(package))
        run_pytest(session, "-m", "slurm", tests, report=f"slurm-{package}")


@nox.session
def nfs(session: nox.Session) -> None:
    """Try locks and sweeps on machines that share a folder over NFS, which are Linux kernels in user mode."""
    install(session, ["model", *OUR_EXTRAS["model"]], *test_groups("model"))
    packages = ("user-mode-linux", "nfs-kernel-server", "iproute2", "kmod")
    install_packages(session, *packages, programs=("linux.uml",))
    session.chdir(folder("model"))
    run_pytest(session, "-m", "nfs", "tests/sweep/test_lock_trial.py", report="nfs")


@nox.session(reuse_venv=False)
def purity(session: nox.Session) -> None:
    """Test that the laws wheel works alone, and mnmt-data and mnmt-eval without torch and mnmt-model."""
    session.install("--group=test", make_wheel(session, "laws"))
    run_pytest(session, "tests/purity/test_laws_alone.py", report="purity-laws")
    install(session, ["eval"])
    run_pytest(session, "tests/purity/test_data_and_eval_without_torch.py", report="purity-data-eval")


@nox.session
def build(session: nox.Session) -> None:
    """Build wheels and sdists of all packages, install these files in a clean place, and import them."""
    session.install("build", "hatchling", "virtualenv", *BUILD_REQUIREMENTS)
    with TemporaryDirectory() as place:
        for package in PACKAGES:
            built = ("python", "-m", "build", "--no-isolation", f"--outdir={place}", folder(package))
            session.run(*built, env={"CMAKE_ARGS": "-DMNMT_MOE_CUDA=OFF"})  # ext_cuda compiles them
        session.run("virtualenv", f"{place}/clean")
        wheels = map(str, Path(place).glob("*.whl"))
        session.run(f"{place}/clean/bin/pip", "install", "--group=test", *wheels, external=True)
        run_pytest(session, "tests/distributions", report="build", folder_of_pytest=f"{place}/clean/bin/")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation with its API pages in docs/_build, warnings as errors."""
    session.install("--group=docs")
    install_without_torch(session, PIPELINE)
    session.run("python", "docs/model/write_train_keys.py", "--check")
    session.run("python", "-m", "studies.analysis.claims", "--check")
    session.run("sphinx-build", "--quiet", "-W", "--keep-going", "docs", "docs/_build")


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Run every benchmark and analysis of a study with tiny sizes, to see that it works: with `--smoke`."""
    install(session, PACKAGES, "--group=benchmarks")
    for module in (*scripts("benchmarks"), *scripts("studies/analysis")):
        session.run("python", "-m", module, "--smoke", silent=True)


@nox.session
def figures(session: nox.Session) -> None:
    """Remake every figure and number of docs/studies from the run tables there, or those named after `--`."""
    install(session, PIPELINE)
    modules = [f"studies.analysis.{name}" for name in session.posargs]
    for module in modules or scripts("studies/analysis"):
        session.run("python", "-m", module)


@nox.session
def study(session: nox.Session) -> None:
    """Run a study from data to report: studies/synthetic.toml, or those named after `--`."""
    paths = session.posargs or ["studies/synthetic.toml"]
    install(session, PACKAGES if any(map(has_experts, paths)) else PIPELINE)
    for path in paths:
        session.run("mnmt-data", "prepare", path)
        runs = f"results/{read_toml(path)['name']}/runs"
        session.run("mnmt-model", "plan", path)
        session.run("mnmt-model", "sweep", path)
        session.run("mnmt-eval", "score", runs)
        session.run("mnmt-laws", "report", runs)


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Make an environment to work in, `.venv`: all packages, editable, with what tests and checks need."""
    session.run(sys.executable, "-m", "venv", ".venv")
    pip = (".venv/bin/python", "-m", "pip", "install")
    session.run(*pip, "--upgrade", "pip")  # a Python's own pip may be too old for dependency groups
    groups = [group for package in PACKAGES for group in test_groups(package)]
    session.run(*pip, *BUILD_REQUIREMENTS, "hatchling", "editables")
    editable = [argument for package in PACKAGES for argument in ("--editable", folder(package))]
    session.run(*pip, "--no-build-isolation", *editable, *groups, "nox", "pre-commit", env=NOT_ISOLATED)
    session.run(*pip, "--group=lint", "--group=types", "--group=docs")
    session.log("made .venv; use it with: . .venv/bin/activate")


@nox.session
def ext_cuda(session: nox.Session) -> None:
    """Compile the CUDA kernels of mnmt-moe-ext, which needs nvcc but no GPU."""
    if shutil.which("nvcc") is None:
        session.skip("nvcc is not on PATH; it comes with the CUDA toolkit")
    session.install(*BUILD_REQUIREMENTS)
    with_cuda = ("--config-settings=cmake.define.MNMT_MOE_CUDA=ON", "--config-settings=build-dir=build/cuda")
    make_wheel(session, "moe-ext", "--no-build-isolation", *with_cuda, env=NOT_ISOLATED)


def install_packages(session: nox.Session, *packages: str, programs: Sequence[str]) -> None:
    """Install packages of the system, unless it has one of their programs, or say why not."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    if any(shutil.which(program, path=path) for program in programs):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        session.warn(f"no {packages[0]}, and only root on a system with apt-get can install it: skipped")
        return
    for command in (("update", "-q"), ("install", "-q", "-y", "--no-install-recommends", *packages)):
        session.run("apt-get", *command, external=True, success_codes=(0, 100))


def folder(package: str) -> str:
    """Return where a package is."""
    return f"./packages/mnmt-{package}"


def scripts(place: str) -> list[str]:
    """Return the modules under a folder that `python -m` runs and that take `--smoke`."""
    files = sorted((ROOT / place).rglob("*.py"))
    smoked = [file for file in files if "smoke=" in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in smoked]


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file; its path is relative to this file."""
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def test_groups(package: str) -> list[str]:
    """Return the arguments with which pip installs what a package's tests need."""
    file = f"{folder(package)}/pyproject.toml"
    return [f"--group={file}:{group}" for group in read_toml(file)["dependency-groups"]]


def install(session: nox.Session, packages: Iterable[str], *arguments: str) -> None:
    """Install packages and those of this repository that they require, and what else `arguments` ask for."""
    chosen = with_required(packages)
    if "moe-ext" in chosen:
        session.install(*BUILD_REQUIREMENTS)
        # By force: pip takes a wheel of the same version for the one that is installed.
        session.install("--force-reinstall", "--no-deps", native_wheel(session))
    session.install(*(folder(package) for package in chosen if package != "moe-ext"), *arguments)


def native_wheel(session: nox.Session) -> str:
    """Return the wheel of mnmt-moe-ext for the CPU, built once for all sessions and again after a change."""
    wheels = ROOT / ".nox/wheels" / native_digest()
    with (ROOT / ".nox/wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two sessions may run at a time
        if not wheels.exists():
            options = ("cmake.define.MNMT_MOE_CUDA=OFF", "build-dir=build/cpu")
            cpu = (f"--config-settings={option}" for option in options)
            built = make_wheel(session, "moe-ext", "--no-build-isolation", *cpu, env=NOT_ISOLATED)
            wheels.mkdir(parents=True)
            shutil.copy(built, wheels)
    return str(next(wheels.glob("*.whl")))


def native_digest() -> str:
    """Return a digest of everything that the wheel of mnmt-moe-ext is made of."""
    package = ROOT / folder("moe-ext")
    sources = [path for part in ("csrc", "src") for path in (package / part).rglob("*.*")]
    files = [
        ROOT / "constraints.txt",
        package / "CMakeLists.txt",
        package / "pyproject.toml",
        *sorted(sources),
    ]
    contents = [path.read_bytes() for path in files if "__pycache__" not in path.parts]
    return sha256(sys.version.encode() + b"".join(contents)).hexdigest()[:16]


def install_without_torch(session: nox.Session, packages: Sequence[str]) -> None:
    """Install just these packages, with what they require from elsewhere but for torch."""
    required = (requirement for package in packages for requirement in requirements(package))
    session.install(*(requirement for requirement in required if not re.match(r"mnmt-|torch\b", requirement)))
    session.install("--no-deps", *map(folder, packages))


def has_experts(study: str) -> bool:
    """Return whether a study trains mixtures of experts."""
    return "num_experts" in (ROOT / study).read_text(encoding="utf-8")


def requirements(package: str) -> list[str]:
    """Return what a package requires to run."""
    required: list[str] = read_toml(f"{folder(package)}/pyproject.toml")["project"]["dependencies"]
    return required


def with_required(packages: Iterable[str]) -> list[str]:
    """Return packages and, recursively, those of this repository that they require."""
    chosen: list[str] = []
    waiting = list(packages)
    while waiting:
        package = waiting.pop()
        if package not in chosen:
            chosen.append(package)
            waiting += re.findall(r"\bmnmt-([a-z-]+)", " ".join(requirements(package)))
    return chosen


def make_wheel(
    session: nox.Session, package: str, *arguments: str, env: Mapping[str, str] | None = None
) -> str:
    """Build the wheel of a package; its path."""
    wheels = Path(session.create_tmp())
    session.run("pip", "wheel", "--no-deps", f"--wheel-dir={wheels}", *arguments, folder(package), env=env)
    return str(next(wheels.glob("*.whl")))


def run_pytest(
    session: nox.Session,
    *arguments: str,
    report: str,
    folder_of_pytest: str = "",
    env: Mapping[str, str] | None = None,
) -> None:
    """Run pytest and leave its report where .ci/check_reports.py looks for it.

    A test that hangs ends the session after ten minutes, and every thread's stack is printed.
    """
    hangs = ("-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true")
    written = ("--junit-xml", str(ROOT / f".nox/reports/{report}.xml"), "-o", "junit_family=xunit1")
    pytest = (
        f"{folder_of_pytest}pytest",
        f"--rootdir={ROOT}",
        *hangs,
        *written,
        *arguments,
        *session.posargs,
    )
    session.run(*pytest, external=bool(folder_of_pytest), env=env)
