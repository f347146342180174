"""The explorer's charts are valid, and the page can fill them."""

from __future__ import annotations

import vl_convert

from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.explorer import explorer_data
from mnmt_laws.report.explorer_charts import explorer_specs


def test_charts_of_two_tasks_compile(loss_analysis: Analysis) -> None:
    data = explorer_data(loss_analysis)
    assert data is not None
    specs = explorer_specs(loss_analysis, data)
    assert set(specs) == {"weights", "plane"}
    for spec, datasets in zip(
        specs.values(), ({"curve", "now"}, {"plane", "now", "law", "new"}), strict=True
    ):
        compiled = vl_convert.vegalite_to_vega(spec)
        assert datasets <= {source["name"] for source in compiled["data"]}
        assert "chosen" in {signal["name"] for signal in compiled["signals"]}


def test_more_tasks_have_a_line_each(three_analysis: Analysis) -> None:
    data = explorer_data(three_analysis)
    assert data is not None
    assert set(explorer_specs(three_analysis, data)) == {"now"}
