"""Pages in a real browser: the system's Chromium, driven by playwright and cut off from the network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

Visit = Callable[..., Any]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


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


@pytest.fixture
def visit(browser: Any, pages: Mapping[str, Path]) -> Iterator[Visit]:
    """A function that opens one of `pages`, at a width and in light or dark; console errors fail the test."""
    contexts, complaints = [], []

    def open_page(
        name: str | None = None, *, address: str = "", width: int = 1280, scheme: str = "light"
    ) -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _check_address(request.url, complaints))
        page.goto(pages[name or next(iter(pages))].as_uri() + address)
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _check_address(address: str, complaints: list[str]) -> None:
    if not address.startswith(("file:", "data:", "blob:")):
        complaints.append(f"the page asked for {address}")
