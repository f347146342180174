"""Sizes are short, colours come in pairs, and a chart becomes a file or a part of a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

from mnmt_laws.errors import ArgumentError
from mnmt_laws.figures.quality import draw_quality
from mnmt_laws.figures.style import (
    Chart,
    chart_spec,
    format_size,
    panels_of,
    save,
    styled,
    to_svg,
)


@pytest.mark.parametrize(("size", "text"), [(999, "999"), (37216, "37.2K"), (1.3e6, "1.3M"), (2e9, "2B")])
def test_sizes_are_short(size: float, text: str) -> None:
    assert format_size(size) == text


@pytest.fixture
def chart() -> Chart:
    return draw_quality(
        pd.DataFrame({"task": ["aa", "bb"], "loss": [1.0, 2.0], "chrf": [50.0, 40.0]}), "chrf"
    )


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".html", b"<!DOCTYPE html>")],
)
def test_a_chart_is_saved_as_its_suffix_says(chart: Chart, suffix: str, start: bytes, tmp_path: Path) -> None:
    save(chart, tmp_path / "new" / f"figure{suffix}")
    assert (tmp_path / "new" / f"figure{suffix}").read_bytes().startswith(start)


def test_another_suffix_is_refused(chart: Chart, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"figure.gif: must end in .svg, .png, .pdf or .html"):
        save(chart, tmp_path / "figure.gif")
    assert not list(tmp_path.iterdir())


def test_without_its_extra_an_image_names_it_and_a_page_takes_vega_from_the_network(
    chart: Chart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(chart, tmp_path / "whole.html")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for suffix in ("svg", "png", "pdf"):
        with pytest.raises(ArgumentError, match=rf"^\.{suffix} needs .*mnmt-laws\[svg\]"):
            save(chart, tmp_path / f"figure.{suffix}")
    save(chart, tmp_path / "linked.html")
    assert {path.name for path in tmp_path.iterdir()} == {"whole.html", "linked.html"}
    whole, linked = ((tmp_path / name).read_text() for name in ("whole.html", "linked.html"))
    assert 'src="https://' not in whole
    assert linked.count('src="https://') == 3


def test_a_file_is_light_and_a_page_follows_the_reader(chart: Chart) -> None:
    light = to_svg(chart)
    assert b"light-dark" not in light
    assert b"#ffffff" in light
    spec = chart_spec(chart)
    assert "light-dark(#0072b2" in json.dumps(spec)
    assert spec["width"] == "container"
    assert spec["config"]["background"] is None


def test_panels_take_the_width_of_their_places() -> None:
    panel = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    specs = [chart_spec(part) for part in panels_of(styled(panel, panel, columns=2))]
    assert [spec["width"] for spec in specs] == ["container"] * 2
    assert specs[0] == chart_spec(styled(panel))
