"""What a reader sees of the experts of a mixture, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from browser_pages import Visit

pytestmark = pytest.mark.browser

DECODER = "#mixture=decoder+2%2C+good"


def column(page: Any, selector: str) -> list[str]:
    texts: list[str] = page.eval_on_selector_all(selector, "all => all.map(one => one.textContent)")
    return texts


def pixels(page: Any) -> list[list[list[int]]]:
    """Red, green, blue and opacity of each cell, (tasks, experts, 4)."""
    flat: list[int] = page.evaluate(
        "(() => { const canvas = document.querySelector('.cells canvas');"
        " return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data]; })()"
    )
    width = page.evaluate("document.querySelector('.cells canvas').width")
    cells = [flat[place : place + 4] for place in range(0, len(flat), 4)]
    return [cells[place : place + width] for place in range(0, len(cells), width)]


def test_what_serves_alike_tasks_is_beside_each_other(visit: Visit) -> None:
    page = visit("experts", address=DECODER)
    tasks = column(page, ".tasks li")
    assert tasks in (["en-de", "nl-de", "en-fr"], ["nl-de", "en-de", "en-fr"], ["en-fr", "en-de", "nl-de"])
    experts = column(page, ".numbers li")
    assert experts[-1] == "4"
    german, french = ({"1", "3"}, {"0", "2"}) if tasks[-1] == "en-fr" else ({"0", "2"}, {"1", "3"})
    assert (set(experts[:2]), set(experts[2:4])) == (german, french)


def test_colours_are_of_what_a_task_uses_more_and_less(visit: Visit) -> None:
    page = visit("experts", address=DECODER)
    cells = pixels(page)
    tasks, experts = column(page, ".tasks li"), column(page, ".numbers li")

    def cell(task: str, expert: str) -> list[int]:
        return cells[tasks.index(task)][experts.index(expert)]

    more, less = cell("en-fr", "0"), cell("en-fr", "1")
    assert more[2] > more[0]  # blue
    assert less[0] > less[2]  # orange
    assert less[3] == 255  # never used
    assert cell("en-de", "4") == cell("en-fr", "4")
    page.select_option("[name=mixture]", "encoder 2, good")
    assert {cell[3] for row in pixels(page) for cell in row} == {0}


def test_keys_read_the_cells(visit: Visit) -> None:
    page = visit("experts", address=DECODER + "&tasks=source")
    page.focus(".cells canvas")
    page.keyboard.press("ArrowDown")
    tasks, experts = column(page, ".tasks li"), column(page, ".numbers li")
    assert tasks == ["en-de", "en-fr", "nl-de"]
    page.keyboard.press("ArrowDown")
    while "expert 0:" not in page.inner_text(".reading"):
        page.keyboard.press("ArrowRight")
    # Its shares are 0.1, 0.6 and 0.1.
    assert page.inner_text(".reading") == "en-fr, expert 0: 2.3 times the mean of the tasks; its load is 1.33"
    for _ in range(len(experts)):
        page.keyboard.press("ArrowRight")
    assert page.inner_text(".reading").startswith("en-fr, expert 4: never")


def test_the_pointer_reads_the_cells(visit: Visit) -> None:
    page = visit("experts", address=DECODER)
    tasks, experts = column(page, ".tasks li"), column(page, ".numbers li")
    canvas = page.locator(".cells canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.9})
    assert page.inner_text(".reading").startswith(f"{tasks[-1]}, expert {experts[2]}: ")


def test_the_address_keeps_the_picture_and_back_undoes(visit: Visit) -> None:
    page = visit("experts")
    page.select_option("[name=mixture]", "decoder 2, big seed1")
    page.select_option("[name=tasks]", "target")
    shown = column(page, ".tasks li")
    assert shown == sorted(shown)
    assert len(shown) == 80
    other = visit("experts", address=page.evaluate("location.hash"))
    assert column(other, ".tasks li") == shown
    assert other.inner_text("figcaption .layer") == "decoder 2, big seed1"
    page.go_back()
    page.go_back()
    page.wait_for_function("!location.hash")
    assert page.input_value("[name=mixture]") == "encoder 2, good"
    assert len(column(page, ".tasks li")) == 3


def test_dark_mode_draws_with_its_colours(visit: Visit) -> None:
    light, dark = (pixels(visit("experts", address=DECODER, scheme=scheme)) for scheme in ("light", "dark"))
    assert light != dark
    page = visit("experts", address=DECODER)
    picture = "document.querySelector('.cells canvas').toDataURL()"
    before = page.evaluate(picture)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"before => {picture} !== before", arg=before)
    assert pixels(page) == dark


def test_a_page_without_experts_has_no_such_part(visit: Visit) -> None:
    page = visit("one")
    assert page.query_selector("#experts") is None
    assert page.query_selector("[name=mixture]") is None
