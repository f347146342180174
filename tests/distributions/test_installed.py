"""The packages as installed from an index: complete, of the version that files say, and at work."""

import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(folder.name for folder in (ROOT / "packages").glob("*/"))


def described(package):
    file = ROOT / "packages" / package / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("package", PACKAGES)
def test_version_agrees(package):
    assert importlib.metadata.version(package) == described(package)["version"]


@pytest.mark.parametrize("package", PACKAGES)
def test_version_is_the_newest_of_the_changelog_or_the_next(package):
    changelog = (ROOT / "packages" / package / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *earlier = re.findall(r"^## (.+)$", changelog, flags=re.MULTILINE)
    version = described(package)["version"]
    assert first in ("Unreleased", version)
    assert Version(version) > Version(earlier[0])


@pytest.mark.parametrize("package", PACKAGES)
def test_requires_the_others_from_the_versions_that_it_is_tested_with(package):
    for requirement in map(Requirement, importlib.metadata.requires(package)):
        if requirement.name in PACKAGES:
            newest = Version(described(requirement.name)["version"])
            assert str(requirement.specifier) == f">={newest.major}.{newest.minor}", requirement


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
    assert "https://" in told["Project-URL"]
    assert any(file.name == "LICENSE" for file in importlib.metadata.files(package))


@pytest.mark.parametrize("package", [package for package in PACKAGES if "scripts" in described(package)])
def test_command_tells_its_version(package):
    script = Path(sysconfig.get_path("scripts")) / package
    told = subprocess.run([script, "--version"], check=True, capture_output=True, text=True).stdout
    assert told.strip() == importlib.metadata.version(package)


def output_of(*command):
    script = Path(sysconfig.get_path("scripts")) / command[0]
    return subprocess.run([script, *command[1:]], check=True, capture_output=True, text=True).stdout


def test_the_schema_of_studies_has_the_sections_of_both_packages():
    assert {"data", "model", "train", "sweep", "goal"} <= json.loads(output_of("mnmt-data", "schema"))[
        "properties"
    ].keys()


def test_a_published_model_is_planned():
    told = output_of("mnmt-model", "plan", "--preset", "fernandes-l12-d1024", "--vocab-size", "64000")
    assert "453,049,344" in told


def test_the_extension_was_compiled():
    assert "compiled operators: cpu" in output_of(Path(sys.executable).name, "-m", "mnmt_moe_ext")
