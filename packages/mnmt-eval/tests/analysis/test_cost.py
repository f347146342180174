from __future__ import annotations

import pytest

from mnmt_eval.analysis import SystemCost, quality_at_cost

M4 = [
    ("MoE(2048E, 36L)", 44.3, 600e9, 13.5),
    ("MoE(2048E, 12L)", 41.3, 200e9, 10.5),
    ("MoE(512E, 36L)", 43.7, 150e9, 12.9),
    ("MoE(512E, 12L)", 40.0, 50e9, 9.2),
    ("MoE(128E, 36L)", 39.0, 37e9, 8.2),
    ("MoE(128E, 12L)", 36.7, 12.5e9, 5.9),
    ("T(96L)", 36.9, 2.3e9, 6.1),
]
BASELINES = 30.8


def test_the_m4_tables_differences_follow_from_its_averages() -> None:
    systems = [SystemCost(name=name, values={"avg": bleu}, cost=weights) for name, bleu, weights, _ in M4]
    rows = quality_at_cost(systems, {"avg": BASELINES})
    assert [(row.name, round(row.difference, 1)) for row in rows] == [(name, gain) for name, _, _, gain in M4]
    assert {row.name for row in rows if not row.efficient} == {"MoE(2048E, 12L)", "MoE(128E, 12L)"}


def test_where_lower_is_better_a_system_is_efficient_for_its_low_value() -> None:
    systems = [
        SystemCost(name=name, values={"de": ter}, cost=cost)
        for name, ter, cost in [("good", 40.0, 2.0), ("cheap", 50.0, 1.0), ("neither", 60.0, 3.0)]
    ]
    rows = quality_at_cost(systems, {"de": 70.0}, higher_is_better=False)
    assert [(row.name, row.difference, row.efficient) for row in rows] == [
        ("good", -30.0, True),
        ("cheap", -20.0, True),
        ("neither", -10.0, False),
    ]


def test_quality_is_averaged_over_the_baselines_tasks_alone() -> None:
    system = SystemCost(name="all", values={"en-de": 30.0, "en-fr": 40.0, "de-fr": 1.0}, cost=1.0)
    (row,) = quality_at_cost([system], {"en-de": 20.0, "en-fr": 38.0})
    assert (row.value, row.difference) == (35.0, 6.0)


@pytest.mark.parametrize(
    ("systems", "baselines", "message"),
    [
        ([], {}, "`baselines` must have at least one task"),
        (
            [SystemCost(name="a", values={"en-de": 1.0}, cost=1.0)],
            {"en-fr": 1.0},
            "a must have a value of every baseline's task, but lacks en-fr",
        ),
    ],
)
def test_costs_that_cannot_be_compared_are_told(
    systems: list[SystemCost], baselines: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        quality_at_cost(systems, baselines)
