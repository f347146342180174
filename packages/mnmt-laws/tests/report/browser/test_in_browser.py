"""A report in a real browser."""

from __future__ import annotations

import tomllib

import pytest
from browser_pages import Visit

pytestmark = pytest.mark.browser


def test_next_runs_are_copied_for_a_study(visit: Visit) -> None:
    page = visit()
    page.click("[data-copy=study-1]")
    page.wait_for_function("document.querySelector('[data-copy=study-1]').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert tomllib.loads(copied)["sweep"]["fit"]["mixtures"]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut(visit: Visit, width: int) -> None:
    page = visit(width=width)
    page.eval_on_selector_all("details", "all => all.forEach(part => { part.open = true; })")
    beyond = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(part => !part.parentElement.closest('.scroll, svg')"
        " && part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML.slice(0, 90))"
    )
    assert beyond == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    charts = page.eval_on_selector_all(
        ".chart", "all => all.map(chart => [chart.clientWidth, chart.querySelector('svg').clientWidth])"
    )
    assert all(drawn <= place + 1 for place, drawn in charts)


def test_dark_mode_changes_page_and_charts(visit: Visit) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = visit(scheme=scheme)
        colours.append(
            page.evaluate(
                "[getComputedStyle(document.body).backgroundColor,"
                " ...[...document.querySelectorAll('.chart svg text')].slice(0, 40)"
                ".map(text => getComputedStyle(text).fill)]"
            )
        )
    light, dark = colours
    assert light[0] == "rgb(255, 255, 255)"
    assert len(light) == len(dark) > 30
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_a_point_tells_its_run(visit: Visit) -> None:
    page = visit()
    page.eval_on_selector("[data-spec]", "chart => chart.scrollIntoView({ block: 'center' })")
    places = page.eval_on_selector_all(
        "[data-spec] .mark-symbol.role-mark path",
        "points => points.slice(0, 5).map(point => { const box = point.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })",
    )
    page.mouse.move(*places[0])
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "measured" in page.inner_text("#vg-tooltip-element")
