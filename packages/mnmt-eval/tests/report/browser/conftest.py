"""A page in a real browser: the system's Chromium, driven by playwright and cut off from the network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnmt_eval.compare import name_systems, open_systems
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.report import ReportConfig, make_report, write_report
from mnmt_eval.runs import TextFiles

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WORDS = np.array(
    ["der", "die", "Hund", "Katze", "Garten", "schläft", "sieht", "nicht", "heute", "Donaudampfschiff"]
)
ERRORS = {"a system with quite a long name": 0.3, "middle": 0.25, "good": 0.05}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A running Chromium; tests are skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed; `nox -s browser` installs it"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH; the system's package `chromium` has it")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of three systems on two texts, and of one system alone."""
    folder, rng = tmp_path_factory.mktemp("pages"), np.random.default_rng(1)
    texts = []
    for task in ("en-de", "de-en"):
        lines = [rng.choice(WORDS, size=rng.integers(1, 25)).tolist() for _ in range(120)]
        files = {"ref": write(folder / f"{task}.ref", [" ".join(line) for line in lines])}
        for name, share in ERRORS.items():
            outputs = [
                " ".join(str(rng.choice(WORDS)) if rng.random() < share else word for word in line)
                for line in lines
            ]
            outputs[7] = "" if name == "good" else outputs[7]
            files[name] = write(folder / f"{task}.{name}", outputs)
        systems = name_systems([f"{name}={files[name]}" for name in ERRORS])
        texts += open_systems(
            systems,
            testset="test",
            files=TextFiles(task=task, references=(files["ref"],), source=files["ref"]),
        )
    alone = open_systems(
        name_systems([f"good={folder / 'en-de.good'}"]),
        testset="test",
        files=TextFiles(task="en-de", references=(folder / "en-de.ref",)),
    )
    config = ReportConfig(metrics=MetricSet(names=("chrf", "ter")))
    return {
        "three": write_report(make_report(texts, config), folder / "three"),
        "one": write_report(make_report(alone, config), folder / "one"),
    }


@pytest.fixture
def visit(browser: Any, pages: dict[str, Path]) -> Iterator[Callable[..., Any]]:
    """A function that opens a page by name, at a width and in light or dark; console errors fail the test."""
    contexts, complaints = [], []

    def open_page(name: str = "three", *, address: str = "", width: int = 1280, scheme: str = "light") -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _check_address(request.url, complaints))
        page.goto(pages[name].as_uri() + address)
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _check_address(address: str, complaints: list[str]) -> None:
    if not address.startswith(("file:", "data:")):
        complaints.append(f"the page asked for {address}")
