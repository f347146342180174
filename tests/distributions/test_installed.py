"""The packages as installed from their built files: complete, and of the version they say."""

import importlib
import importlib.metadata
import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(folder.name for folder in (ROOT / "packages").glob("*/"))


def described(package):
    file = ROOT / "packages" / package / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("package", PACKAGES)
def test_version_agrees(package):
    changelog = (ROOT / "packages" / package / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?([\d.]+)", changelog, flags=re.MULTILINE)
    assert newest is not None
    assert importlib.metadata.version(package) == described(package)["version"] == newest[1]


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_from_where_it_was_installed(package):
    module = importlib.import_module(package.replace("-", "_"))
    assert Path(module.__file__).is_relative_to(sysconfig.get_path("platlib"))


@pytest.mark.parametrize("package", PACKAGES)
def test_holds_every_source_file(package):
    source = ROOT / "packages" / package / "src"
    installed = {str(file) for file in importlib.metadata.files(package)}
    written = {str(p.relative_to(source)) for p in source.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert written <= installed


@pytest.mark.parametrize("package", PACKAGES)
def test_says_what_it_is(package):
    told = importlib.metadata.metadata(package)
    assert told["License-Expression"] == "MIT"
    assert told["Requires-Python"] == ">=3.11"
    assert any(file.name == "LICENSE" for file in importlib.metadata.files(package))


@pytest.mark.parametrize("package", [package for package in PACKAGES if "scripts" in described(package)])
def test_command_tells_its_version(package):
    script = Path(sysconfig.get_path("scripts")) / package
    told = subprocess.run([script, "--version"], check=True, capture_output=True, text=True).stdout
    assert told.strip() == importlib.metadata.version(package)
