"""What a reader does with the page, in a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser_pages import Visit

pytestmark = pytest.mark.browser


def data_of(page: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(page.text_content("#data"))
    return data


def numbers(page: Any) -> list[int]:
    """The numbers of the sentences that are shown, in order."""
    heads = page.eval_on_selector_all(
        ".card .head span:first-child", "all => all.map(one => one.textContent)"
    )
    return [int(head.removeprefix("sentence ")) for head in heads]


def show_all(page: Any) -> None:
    while page.is_visible(".more"):
        page.click(".more")


def scores(page: Any, name: str, text: int = 0) -> list[float]:
    (system,) = (s for s in data_of(page)["texts"][text]["systems"] if s["name"] == name)
    found: list[float] = system["sentence_scores"]
    return found


def test_it_opens_on_the_largest_disagreements_of_the_best_and_the_baseline(visit: Visit) -> None:
    page = visit()
    chosen = page.evaluate(
        "['system', 'against', 'order'].map(name => document.forms[0].elements[name].value)"
    )
    assert chosen == ["good", "a system with quite a long name", "disagreement"]
    show_all(page)
    good, baseline = scores(page, "good"), scores(page, "a system with quite a long name")
    shown = numbers(page)
    assert sorted(shown) == list(range(1, 121))
    words = [len(line.split()) for line in data_of(page)["texts"][0]["references"][0]]
    long = [number for number in shown[:-1] if words[number - 1] >= 5]
    gaps = [abs(good[number - 1] - baseline[number - 1]) for number in long]
    assert gaps == sorted(gaps, reverse=True)
    assert len(long) > 80
    assert shown[:-1] == [*long, *sorted(set(shown[:-1]) - set(long))]
    assert shown[-1] == 8
    assert "lines of fewer than 5 words come last" in page.inner_text("[role=status]")


def test_empty_outputs_are_told_once(visit: Visit) -> None:
    page = visit()
    assert "then empty outputs: 1 of good" in page.inner_text("[role=status]")
    page.click("[data-filter=symptom][data-value=empty]")
    assert numbers(page) == [8]
    assert page.inner_text(".card").count("empty") == 1


def test_a_bar_filters_by_score_and_a_second_click_takes_it_back(visit: Visit) -> None:
    page = visit()
    bars = page.query_selector_all("[data-filter=score]")
    counts = []
    for place in range(len(bars)):
        bar = page.query_selector_all("[data-filter=score]")[place]
        told = int(bar.get_attribute("aria-label").split("good ")[1].split()[0])
        low, high = bar.get_attribute("aria-label").split(":")[0].split(" to ")
        bar.click()
        show_all(page)
        found = [scores(page, "good")[number - 1] for number in numbers(page)]
        assert len(found) == told
        assert all(float(low) <= score <= float(high) for score in found)
        counts.append(told)
        page.query_selector_all("[data-filter=score]")[place].click()
    assert sum(counts) == 120
    show_all(page)
    assert len(numbers(page)) == 120


def test_buckets_tell_their_counts_before_they_filter(visit: Visit) -> None:
    page = visit()
    for name in ("length", "group", "symptom"):
        for button in range(len(page.query_selector_all(f"[data-filter={name}]"))):
            chosen = page.query_selector_all(f"[data-filter={name}]")[button]
            told = int(chosen.evaluate("button => button.closest('tr').cells[1].textContent"))
            chosen.click()
            show_all(page)
            assert len(numbers(page)) == told
            page.click(".clear")


def test_the_address_keeps_the_view_and_back_undoes(visit: Visit) -> None:
    page = visit()
    first = numbers(page)
    page.select_option("[name=text]", "test.de-en")
    page.select_option("[name=system]", "middle")
    page.select_option("[name=order]", "behind")
    page.click("[data-filter=length]")
    page.fill("[name=contains]", "katze")
    shown, address = numbers(page), page.evaluate("location.hash")
    other = visit(address=address)
    assert numbers(other) == shown
    assert other.input_value("[name=system]") == "middle"
    assert other.get_attribute("[data-filter=length]", "aria-pressed") == "true"
    for _ in range(4):
        page.go_back()
    page.wait_for_function("!location.hash")
    assert numbers(page) == first


def test_filters_are_driven_by_keys_and_keep_the_focus(visit: Visit) -> None:
    page = visit()
    page.focus("[data-filter=length]")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.filter") == "length"
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"


def test_a_group_of_a_table_is_read_by_a_click(visit: Visit) -> None:
    page = visit(address="#order=worst")
    page.eval_on_selector_all("details", "all => all.forEach(part => { part.open = true; })")
    page.click(".groups a >> nth=4")  # the second group of the second system
    group, system = page.evaluate(
        "(() => { const row = document.querySelectorAll('.groups tbody tr')[4];"
        " return [row.querySelector('a').textContent, row.cells[1].textContent]; })()"
    )
    group, _, count = group.partition(" ")
    assert (group, count, system) == ("2/8", "(15)", "middle")
    assert page.input_value("[name=system]") == system
    assert page.get_attribute(f"[data-filter=group][data-value='{group}']", "aria-pressed") == "true"
    show_all(page)
    members = data_of(page)["texts"][0]["buckets"]["group"]["members"]
    assert sorted(numbers(page)) == [row + 1 for row, place in enumerate(members) if place == 1]
    assert page.evaluate("document.getElementById('read').getBoundingClientRect().top") < 900


def test_systems_without_references_are_read_beside_each_other(visit: Visit) -> None:
    page = visit("reference-free")
    show_all(page)
    assert len(numbers(page)) == 120
    assert page.eval_on_selector(".card dl", "card => card.children.length") == 4
    assert page.locator(".card .score").all_inner_texts()[:4] == ["0.2500", "0.5000"] * 2
    page.select_option("[name=against]", "nothing")
    assert page.eval_on_selector(".card dl", "card => card.children.length") == 2


def test_filters_that_a_page_lacks_are_passed_over(visit: Visit) -> None:
    page = visit("one", address="#group=2%2F8")
    show_all(page)
    assert len(numbers(page)) == 120


@pytest.mark.parametrize("name", ["three", "one", "reference-free"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_and_no_column_is_hidden(visit: Visit, name: str, width: int) -> None:
    page = visit(name, width=width)
    page.eval_on_selector_all("details", "all => all.forEach(part => { part.open = true; })")
    beyond = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(part => !part.closest('thead')"
        " && part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML.slice(0, 90))"
    )
    assert beyond == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    hidden = page.eval_on_selector_all(
        ".scores tbody td:not(.none), .buckets td",
        "all => all.filter(cell => !cell.getBoundingClientRect().width).map(cell => cell.outerHTML)",
    )
    assert hidden == []


def test_one_system_alone_is_read_beside_the_reference(visit: Visit) -> None:
    page = visit("one")
    chosen = page.evaluate(
        "['system', 'against', 'order'].map(name => document.forms[0].elements[name].value)"
    )
    assert chosen == ["good", "the reference", "worst"]
    shown = [scores(page, "good")[number - 1] for number in numbers(page)]
    assert shown == sorted(shown)


def test_dark_mode_changes_the_page_and_its_bars(visit: Visit) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = visit(scheme=scheme)
        colours.append(
            page.evaluate(
                "['body', '.pair .mine', '.pair .other'].map(name =>"
                " getComputedStyle(document.querySelector(name)).backgroundColor)"
            )
        )
    assert colours[0][0] == "rgb(255, 255, 255)"
    assert all(one != other for one, other in zip(*colours, strict=True))
