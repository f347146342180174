"""Everything this repository checks, a session each: `nox -l` lists them, `nox -s NAME` runs one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Sequence
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
WITH_PAGES = ("laws", "eval")
SOURCES = [f"packages/mnmt-{package}/src" for package in PACKAGES]
BUILD_REQUIREMENTS = ("torch", "scikit-build-core", "pybind11", "cmake", "ninja")
SHARED = ROOT / ".nox/shared"
"""The environment of all sessions, except for those that test an installation."""
GROUPS = [
    f"--group={name}" for name in ("test", "types", "docs", "benchmarks", "browser", "notebooks", "dev")
]

# Makes torch, oneDNN and MKL take the kernels for processors without AVX, which round differently.
SSE41 = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}

RESUMED = "test_killed_and_resumed_equals_never_stopped"
EMULATED = [
    "tests/transformer/test_architectures.py",
    "tests/transformer/test_loss.py",
    "tests/transformer/test_modules.py",
    f"tests/training/test_parallel.py::{RESUMED}",
    f"tests/training/test_trainer.py::{RESUMED}",
]

# What `release` installs in each environment, in the order of dependencies, and the tests there.
INSTALLED = (
    (["mnmt-laws"], "tests/purity/test_laws_alone.py"),
    (["mnmt-eval"], "tests/purity/test_data_and_eval_without_torch.py"),
    (["mnmt-data", "mnmt-model[moe]", "mnmt-eval[runs]", "mnmt-laws"], "tests/distributions"),
)

# Every pip obeys the pins, those of isolated builds too. A file: address may hold spaces.
os.environ["PIP_CONSTRAINT"] = os.environ["PIP_BUILD_CONSTRAINT"] = (ROOT / "constraints.txt").as_uri()
# Where a build is not isolated, pip refuses pins for it.
NOT_ISOLATED = {"PIP_BUILD_CONSTRAINT": ""}
# Only `ext_cuda` compiles the CUDA kernels.
CPU_ONLY = {"CMAKE_ARGS": "-DMNMT_MOE_CUDA=OFF"}


@nox.session
def lint(session: nox.Session) -> None:
    """Check the style of Python and C++, names and docstrings, circles, and who may import whom."""
    session.install("--group=lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("python", ".ci/check_style.py")
    session.run("python", ".ci/check_circles.py")
    native = Path("packages/mnmt-moe-ext/csrc").rglob("*.*")
    session.run("clang-format", "--dry-run", "--Werror", *map(str, native))
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join(SOURCES)})


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Check the types of every package, strictly."""
    run_shared(session, "mypy", *SOURCES, "noxfile.py", ".ci")


@nox.session(venv_backend="none")
@nox.parametrize("suite", SUITES, ids=SUITES)
def tests(session: nox.Session, suite: str) -> None:
    """Run the fast tier of tests, which every change passes; pytest gets what follows `--`."""
    run_pytest(session, suite, *session.posargs, report=suite)


@nox.session(venv_backend="none")
def slow(session: nox.Session) -> None:
    """Run the slow tier, before a change is called done, and the sessions with other programs."""
    for report in ROOT.glob(".nox/reports/slow-*.xml"):
        report.unlink()
    for suite in SUITES:
        marks = "slow and not browser" if suite in WITH_PAGES else "slow"
        run_pytest(session, suite, "-m", marks, report=f"slow-{suite}", success_codes=(0, 1, 5))
    for name in ("emulated", "browser", "slurm", "benchmarks", "ext_cuda", "slow_reports"):
        session.notify(name, ["-m", "browser"] if name == "browser" else ())


@nox.session(venv_backend="none")
def slow_reports(session: nox.Session) -> None:
    """Sum up the reports of the slow tier, as `slow` does in the end."""
    session.run(sys.executable, ".ci/check_reports.py", "slow")


@nox.session(venv_backend="none")
def emulated(session: nox.Session) -> None:
    """Test models against their oracles, and resumed runs, as on a processor with SSE4.1 and no AVX."""
    run_pytest(session, "model", "-m", "not cuda and not slurm", *EMULATED, report="slow-emulated", env=SSE41)


@nox.session(venv_backend="none")
def browser(session: nox.Session) -> None:
    """Drive the reports' pages in the system's Chromium, which is installed if possible."""
    install_packages(session, "chromium", programs=("chromium", "chromium-browser", "google-chrome"))
    selection = session.posargs or ["-m", "browser and not slow"]
    for package in WITH_PAGES:
        run_pytest(session, package, *selection, "tests/report/browser", report=f"browser-{package}")


@nox.session(venv_backend="none")
def notebooks(session: nox.Session) -> None:
    """Run the notebooks of examples/ from top to bottom."""
    run_pytest(
        session, "integration", "-m", "slow", "tests/integration/test_notebooks.py", report="slow-notebooks"
    )


@nox.session(venv_backend="none")
def slurm(session: nox.Session) -> None:
    """Prepare and train through a real Slurm on this machine; install Debian's packages if possible."""
    install_packages(session, "slurm-wlm", "munge", programs=("slurmctld", "munged"))
    for package in ("data", "model"):
        run_pytest(session, package, "-m", "slurm", report=f"slow-slurm-{package}")


@nox.session
def release(session: nox.Session) -> None:
    """Build all packages, install each by name from a local index, test it, and print the tags to set."""
    session.install("--group=release")
    with TemporaryDirectory() as place:
        for package in PACKAGES:
            built = ("-m", "build", "--no-isolation", f"--outdir={place}", folder(package))
            run_shared(session, "python", *built, env=CPU_ONLY)
        session.run("twine", "check", "--strict", *map(str, Path(place).glob("*.*")))
        index = make_index(Path(place))
        for number, (names, tests) in enumerate(INSTALLED):
            session.run(sys.executable, "-m", "virtualenv", "--quiet", f"{place}/{number}", external=True)
            python = f"{place}/{number}/bin/python"
            for name in names:
                install_by_name(session, python, name, index)
            session.run(python, "-m", "pip", "install", "--quiet", "--group=test", external=True)
            pytest = ("-m", "pytest", f"--rootdir={ROOT}", *junit(f"release-{number}"), tests)
            path = f"{place}/{number}/bin{os.pathsep}{os.environ.get('PATH', '')}"
            session.run(python, *pytest, external=True, env={"PATH": path})
    for package in PACKAGES:
        check_tag(session, package)


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Build the documentation with its API pages in docs/_build, warnings as errors."""
    run_shared(session, "python", "docs/model/write_train_keys.py", "--check")
    run_shared(session, "python", "-m", "studies.analysis.claims", "--check")
    run_shared(session, "sphinx-build", "--quiet", "-W", "--keep-going", "docs", "docs/_build")


@nox.session(venv_backend="none")
def benchmarks(session: nox.Session) -> None:
    """Run every benchmark and analysis of a study with tiny sizes (`--smoke`), to see that it works."""
    for module in (*scripts("benchmarks"), *scripts("studies/analysis")):
        run_shared(session, "python", "-m", module, "--smoke", silent=True)


@nox.session(venv_backend="none")
def figures(session: nox.Session) -> None:
    """Remake every figure and number of docs/studies from the run tables there, or those named after `--`."""
    modules = [f"studies.analysis.{name}" for name in session.posargs]
    for module in modules or scripts("studies/analysis"):
        run_shared(session, "python", "-m", module)


@nox.session
def study(session: nox.Session) -> None:
    """Run a study from data to report: studies/synthetic.toml, or those named after `--`."""
    paths = session.posargs or ["studies/synthetic.toml"]
    install(session, PACKAGES if any(map(has_experts, paths)) else PIPELINE)
    session.install(f"{folder('laws')}[svg]", silent=False)
    for path in paths:
        session.run("mnmt-data", "prepare", path)
        runs = f"results/{read_toml(path)['name']}/runs"
        session.run("mnmt-model", "sweep", path)
        target = read_toml(path).get("goal", {}).get("size")
        if target:
            session.run("python", "-m", "studies.loop", "train", path)
        session.run("mnmt-eval", "score", runs)
        session.run("mnmt-laws", "report", runs)
        if target:
            session.run("python", "-m", "studies.loop", "compare", path)


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Make an environment to work in, `.venv`: all packages, editable, and the tools of tests and checks."""
    make_environment(session, ROOT / ".venv")
    session.log("made .venv; use it with: . .venv/bin/activate")


@nox.session(venv_backend="none")
def ext_cuda(session: nox.Session) -> None:
    """Compile the CUDA kernels of mnmt-moe-ext, which needs nvcc but no GPU."""
    if shutil.which("nvcc") is None:
        session.skip("nvcc is not on PATH; it comes with the CUDA toolkit")
    with TemporaryDirectory() as place:
        options = ("cmake.define.MNMT_MOE_CUDA=ON", "build-dir=build/cuda")
        settings = (f"--config-settings={option}" for option in options)
        wheel = ("wheel", "--no-deps", f"--wheel-dir={place}", "--no-build-isolation", *settings)
        run_shared(session, "python", "-m", "pip", *wheel, folder("moe-ext"), env=NOT_ISOLATED)


@nox.session(venv_backend="none")
def gpu_dry(session: nox.Session) -> None:
    """Run benchmarks/on_gpu.sh without a GPU, with an environment's `python3` whose pip has no network."""
    run_shared(session, "python", ".ci/gpu_dry.py")


def run_shared(session: nox.Session, program: str, *arguments: str, **options: Any) -> None:
    """Run a program in the shared environment; make the environment first if it is missing or stale."""
    SHARED.parent.mkdir(exist_ok=True)
    with SHARED.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two sessions may run at a time
        stamp = SHARED / "digest"
        if not stamp.exists() or stamp.read_text() != environment_digest():
            make_environment(session, SHARED)
            stamp.write_text(environment_digest())
    path = f"{SHARED / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    env = {"PATH": path, **options.pop("env", {})}
    session.run(str(SHARED / "bin" / program), *arguments, env=env, external=True, **options)


def make_environment(session: nox.Session, place: Path) -> None:
    """Install all packages, editable, and the dependencies of tests, types, docs and benchmarks."""
    session.run(sys.executable, "-m", "virtualenv", "--quiet", str(place), external=True)
    pip = (str(place / "bin/python"), "-m", "pip", "install", "--quiet")
    groups = [group for package in PACKAGES for group in test_groups(package)]
    editable = [argument for package in PACKAGES for argument in ("--editable", folder(package))]
    session.run(*pip, *BUILD_REQUIREMENTS, "hatchling", "editables", external=True)
    env = {**NOT_ISOLATED, **CPU_ONLY}
    with session.chdir(ROOT):
        session.run(*pip, "--no-build-isolation", *editable, *groups, *GROUPS, env=env, external=True)


def environment_digest() -> str:
    """Return a digest of everything that the shared environment is made from."""
    native = ROOT / folder("moe-ext") / "csrc"
    files = [
        ROOT / "constraints.txt",
        ROOT / "noxfile.py",
        ROOT / "pyproject.toml",
        *ROOT.glob("packages/*/pyproject.toml"),
        native.parent / "CMakeLists.txt",
        *native.rglob("*.*"),
    ]
    contents = [file.read_bytes() for file in sorted(files)]
    return sha256(sys.version.encode() + b"".join(contents)).hexdigest()


def run_pytest(session: nox.Session, suite: str, *arguments: str, report: str, **options: Any) -> None:
    """Run a suite's tests, two at a time, and leave a report where .ci/check_reports.py looks for it."""
    workers = ("-n", "2", "--dist", "loadfile", "-p", "cpu_seconds")
    env = {"PYTHONPATH": str(ROOT / ".ci"), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"} | options.pop(
        "env", {}
    )
    pytest = ("python", "-m", "pytest", f"--rootdir={ROOT}", *workers, *junit(report), *arguments)
    with session.chdir(ROOT if suite == "integration" else ROOT / folder(suite)):
        run_shared(session, *pytest, env=env, **options)


def junit(report: str) -> tuple[str, ...]:
    """Return pytest's options to write a report, and to end a test that hangs after ten minutes."""
    hangs = ("-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true")
    return (*hangs, "--junit-xml", str(ROOT / f".nox/reports/{report}.xml"), "-o", "junit_family=xunit1")


def install_packages(session: nox.Session, *packages: str, programs: Sequence[str]) -> None:
    """Install packages of the system unless it has one of their programs; warn if that is impossible."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    if any(shutil.which(program, path=path) for program in programs):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        session.warn(f"no {packages[0]}, and only root on a system with apt-get can install it: skipped")
        return
    for command in (("update", "-q"), ("install", "-q", "-y", "--no-install-recommends", *packages)):
        session.run("apt-get", *command, external=True, success_codes=(0, 100))


def folder(package: str) -> str:
    """Return the folder of a package."""
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
    """Return pip's arguments for the dependencies of a package's tests."""
    file = f"{folder(package)}/pyproject.toml"
    return [f"--group={file}:{group}" for group in read_toml(file)["dependency-groups"]]


def install(session: nox.Session, packages: Iterable[str]) -> None:
    """Install packages, with the repository's packages that they require, and let pip say what it does."""
    required = with_required(packages)
    if "moe-ext" in required:
        session.install(*BUILD_REQUIREMENTS, silent=False)
        environment = {**NOT_ISOLATED, **CPU_ONLY}
        session.install("--no-build-isolation", folder("moe-ext"), env=environment, silent=False)
    session.install(*(folder(package) for package in required if package != "moe-ext"), silent=False)


def has_experts(study: str) -> bool:
    """Return whether a study trains mixtures of experts."""
    return "num_experts" in (ROOT / study).read_text(encoding="utf-8")


def requirements(package: str) -> list[str]:
    """Return the dependencies of a package."""
    required: list[str] = read_toml(f"{folder(package)}/pyproject.toml")["project"]["dependencies"]
    return required


def with_required(packages: Iterable[str]) -> list[str]:
    """Return packages and, recursively, the repository's packages that they require."""
    closure: list[str] = []
    waiting = list(packages)
    while waiting:
        package = waiting.pop()
        if package not in closure:
            closure.append(package)
            waiting += re.findall(r"\bmnmt-([a-z-]+)", " ".join(requirements(package)))
    return closure


def make_index(place: Path) -> str:
    """Write a simple index (PEP 503) of a folder's wheels and sdists; return its address."""
    for package in PACKAGES:
        page = place / f"simple/mnmt-{package}/index.html"
        page.parent.mkdir(parents=True)
        files = sorted(place.glob(f"mnmt_{package.replace('-', '_')}-*"))
        links = (f'<a href="../../{file.name}#sha256={digest(file)}">{file.name}</a><br>' for file in files)
        page.write_text("\n".join(["<!DOCTYPE html>", *links]), encoding="utf-8")
    return (place / "simple").as_uri()


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return sha256(file.read_bytes()).hexdigest()


def install_by_name(session: nox.Session, python: str, name: str, index: str) -> None:
    """Install a package by its name; fail if ours came from another index, where anybody can put it."""
    report = Path(python).with_name("report.json")
    # Of equal versions, pip takes that of the last index.
    options = ("--quiet", f"--extra-index-url={index}", f"--report={report}")
    session.run(python, "-m", "pip", "install", *options, name, external=True)
    for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
        package, address = item["metadata"]["name"], item["download_info"]["url"]
        if package.startswith("mnmt-") and not address.startswith(index.removesuffix("simple")):
            session.error(f"{name} brought {package} from {address}, not from the local index")


def check_tag(session: nox.Session, package: str) -> None:
    """Print how to tag a package's version, if its files are ready; fail if the tag has other files."""
    version = read_toml(f"{folder(package)}/pyproject.toml")["project"]["version"]
    tag, name = f"mnmt-{package}-v{version}", f"mnmt-{package} {version}"
    if session.run("git", "tag", "--list", tag, external=True, silent=True):
        if session.run("git", "diff", "--stat", tag, "--", folder(package), external=True, silent=True):
            session.error(f"{folder(package)} differs from tag {tag}: raise `version` in its pyproject.toml")
    elif "\n## Unreleased" in (ROOT / folder(package) / "CHANGELOG.md").read_text(encoding="utf-8"):
        session.log(f"{name} is unreleased: to release it, head its newest changes with {version}")
    else:
        session.log(f"to tag: git tag --annotate {tag} --message '{name}'")
