"""A report in a real browser."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_pages import Visit

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.page import render_page, vega_bundle

pytestmark = pytest.mark.browser


def readout(page: Any) -> list[list[str]]:
    """The rows of the explorer's table."""
    rows: list[list[str]] = page.eval_on_selector_all(
        "#readout tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return rows


def predicted(analysis: Analysis, weight: float, **at: float) -> float:
    """The mean loss of the first of two tasks, by the forecast of the advice."""
    advice = analysis.study.recommendation
    assert advice is not None
    mean, _ = advice.forecast.predict(np.array([[weight, 1 - weight]]), **at)
    return float(mean[0, 0])


def move(page: Any, selector: str, value: float) -> None:
    """Move a slider and let it go."""
    page.eval_on_selector(
        selector,
        "(slider, value) => { slider.value = value; "
        "for (const kind of ['input', 'change']) slider.dispatchEvent(new Event(kind)); }",
        str(value),
    )


def test_the_readout_begins_with_the_advice(visit: Visit, loss_analysis: Analysis) -> None:
    advice = loss_analysis.study.recommendation
    assert advice is not None
    rows = readout(visit())
    assert [row[0] for row in rows] == ["aa", "bb"]
    for row in rows:
        assert float(row[2]) == pytest.approx(advice.predicted[row[0]], rel=5e-3)
        assert row[1] == f"{advice.weights[row[0]]:.1%}"


@pytest.fixture
def page_of_links(
    browser: Any, loss_analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The page without the extra `svg`, before it is opened."""
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "vl_convert", None)
        (tmp_path / "page.html").write_text(render_page(loss_analysis), encoding="utf-8")
    page = browser.new_page()
    page.file = (tmp_path / "page.html").as_uri()
    yield page
    page.close()


def open_links(page: Any, scripts: dict[str, str] | None) -> None:
    """Open the page where the network has scripts, by a part of their addresses, or where there is none."""
    page.route(
        re.compile("^https:"),
        lambda route: (
            route.abort()
            if scripts is None
            else route.fulfill(
                body=scripts.get(route.request.url.rpartition("/")[2].partition("@")[0], ""),
                content_type="text/javascript",
            )
        ),
    )
    page.goto(page.file)
    page.wait_for_selector("html[data-ready]", timeout=60_000)


def test_vega_from_the_network_draws_the_figures(page_of_links: Any) -> None:
    open_links(page_of_links, {"vega-embed": vega_bundle()})
    assert page_of_links.locator("#advice .chart svg").count() > 0
    assert "needs the network" not in page_of_links.inner_text("main")


def test_without_a_network_the_numbers_stand_alone(page_of_links: Any) -> None:
    open_links(page_of_links, None)
    assert "needs the network" in page_of_links.inner_text("#advice .chart >> nth=0")
    before = readout(page_of_links)
    move(page_of_links, "[data-weight]", 0.25)
    assert readout(page_of_links) != before
    assert [row[1] for row in readout(page_of_links)] == ["25.0%", "75.0%"]


def test_sliders_move_the_readout(visit: Visit, loss_analysis: Analysis) -> None:
    page = visit()
    move(page, "[data-weight]", 0.25)
    rows = readout(page)
    assert [row[1] for row in rows] == ["25.0%", "75.0%"]
    assert float(rows[0][2]) == pytest.approx(predicted(loss_analysis, 0.25), rel=5e-3)
    assert "than the advised mixture" in page.inner_text("#cost")
    move(page, "#size", 0)
    assert float(readout(page)[0][2]) > float(rows[0][2])


def test_a_slider_can_be_driven_by_keys(visit: Visit) -> None:
    page = visit()
    before = readout(page)
    page.focus("[data-weight]")
    page.keyboard.press("ArrowRight")
    assert float(readout(page)[0][1][:-1]) > float(before[0][1][:-1]) - 0.05


def test_a_typed_size_is_read_and_a_wrong_one_refused(visit: Visit, loss_analysis: Analysis) -> None:
    page = visit()
    page.fill("[data-typed=size]", "0.5m")
    page.press("[data-typed=size]", "Enter")
    weight = float(readout(page)[0][1][:-1]) / 100
    assert float(readout(page)[0][2]) == pytest.approx(predicted(loss_analysis, weight, size=5e5), rel=5e-3)
    kept = readout(page)
    page.fill("[data-typed=size]", "9e99")
    page.press("[data-typed=size]", "Enter")
    assert page.eval_on_selector("[data-typed=size]", "field => !field.validity.valid")
    assert readout(page) == kept


def test_the_preference_moves_the_weight(visit: Visit) -> None:
    page = visit()
    move(page, "#preference", 0.9)
    much = float(readout(page)[0][1][:-1])
    move(page, "#preference", 0.1)
    assert float(readout(page)[0][1][:-1]) < much


def test_the_address_restores_the_state_and_back_works(visit: Visit) -> None:
    page = visit()
    first = readout(page)
    move(page, "[data-weight]", 0.7)
    chosen, address = readout(page), page.evaluate("location.hash")
    assert "weights=0.7,0.3" in address
    assert readout(visit(address=address)) == chosen
    page.go_back()
    page.wait_for_function("!location.hash")
    assert readout(page) == first


def test_the_copied_mixture_is_valid_in_a_study(visit: Visit) -> None:
    page = visit()
    page.click("[data-copy=mixture-toml]")
    page.wait_for_function("document.querySelector('[data-copy=mixture-toml]').textContent === 'Copied'")
    (mixture,) = tomllib.loads(page.evaluate("navigator.clipboard.readText()"))["sweep"]["fit"]["mixtures"]
    shown = {row[0]: float(row[1][:-1]) / 100 for row in readout(page)}
    assert mixture == pytest.approx(shown, abs=1.5e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("more_pages")
def test_three_tasks_have_a_slider_each(visit: Visit) -> None:
    page = visit("three")
    for index, value in enumerate((1, 1, 0)):
        page.eval_on_selector_all(
            "[data-weight]",
            "(sliders, [index, value]) => { sliders[index].value = value; "
            "sliders[index].dispatchEvent(new Event('input')); }",
            [index, value],
        )
    rows = readout(page)
    assert rows[2][1:3] == ["0.0%", "no forecast without training on it"]
    assert sum(float(row[1][:-1]) for row in rows) == pytest.approx(100, abs=0.2)


@pytest.mark.slow
@pytest.mark.usefixtures("more_pages")
def test_a_length_is_chosen_where_the_law_knows_it(visit: Visit, length_analysis: Analysis) -> None:
    page = visit("length")
    page.fill("[data-typed=tokens]", "3e6")
    page.press("[data-typed=tokens]", "Enter")
    weight = float(readout(page)[0][1][:-1]) / 100
    expected = predicted(length_analysis, weight, tokens=3e6)
    assert float(readout(page)[0][2]) == pytest.approx(expected, rel=5e-3)
    assert "tokens=3000000" in page.evaluate("location.hash")
    move(page, "#tokens", 0)
    assert float(readout(page)[0][2]) > expected


def test_a_folded_figure_is_drawn_when_it_is_opened(visit: Visit) -> None:
    page = visit()
    fold = "#trade-off-frontier"
    assert page.eval_on_selector(f"{fold} .chart", "chart => !chart.querySelector('svg')")
    page.click(f"{fold} > summary")
    page.wait_for_selector(f"{fold} .chart svg")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut(visit: Visit, width: int) -> None:
    page = visit(width=width)
    page.eval_on_selector_all("details", "all => all.forEach(part => { part.open = true; })")
    page.wait_for_function(
        "[...document.querySelectorAll('.chart')].every(chart => chart.querySelector('svg'))"
    )
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
    page.eval_on_selector(".fold[open] [data-spec]", "chart => chart.scrollIntoView({ block: 'center' })")
    places = page.eval_on_selector_all(
        ".fold[open] [data-spec] .mark-symbol.role-mark path",
        "points => points.slice(0, 5).map(point => { const box = point.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })",
    )
    page.mouse.move(*places[0])
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "measured" in page.inner_text("#vg-tooltip-element")
