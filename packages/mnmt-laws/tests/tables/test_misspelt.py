"""Names of tasks that look misspelt."""

from __future__ import annotations

import pandas as pd
import pytest

from mnmt_laws import read_table, recommend
from mnmt_laws.errors import TableError
from mnmt_laws.tables import misspelt as module

RUNS = [f"en-de:{p},en-fr:{1 - p}" for p in (0.25, 0.5, 0.75)] * 2


def table(**changed: str) -> pd.DataFrame:
    """Return losses of both tasks of six models; those of the third have other fields."""
    rows = [
        {"size": 1e5 * (1 + number), "task": task, "mixture": mixture, "value": 3.0 + number / 10}
        for number, mixture in enumerate(RUNS)
        for task in ("en-de", "en-fr")
    ]
    frame = pd.DataFrame(rows)
    frame.loc[5, list(changed)] = list(changed.values())
    if "mixture" in changed:
        frame.loc[4, "mixture"] = changed["mixture"]
    return frame


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ({"mixture": "en-de:0.75,en-fre:0.25"}, "rows 6 and 7"),
        ({"task": "en-fre"}, "row 7"),
        ({"task": "en-fre", "mixture": "en-de:0.75,en-fre:0.25"}, "rows 6 and 7"),
    ],
)
def test_rows_with_a_name_of_one_model_are_left_out_and_what_may_be_meant_is_named(
    changed: dict[str, str], rows: str
) -> None:
    read = read_table(table(**changed))
    line = f"table: {rows}: left out, for no other model names `en-fre`; is `en-fr` meant?"
    assert line in read.warnings
    left_out = read.frame.loc[read.frame["role"].eq("left-out"), "row"].astype(str)
    assert " and ".join(left_out) == rows.split(" ", 1)[1]


def test_a_slip_in_one_of_two_lengths_is_named() -> None:
    both = pd.concat([table().assign(tokens=1e9), table(task="en-fre").assign(tokens=4e9)], ignore_index=True)
    line = "table: row 19: left out, for no other model names `en-fre`; is `en-fr` meant?"
    assert line in read_table(both).warnings


@pytest.mark.parametrize(
    "changed",
    [
        {"mixture": "en-de:0.75,en-fr:0.2,en-fre:0.05"},  # the model has both
        {"mixture": "en-de:0.75,it-ru:0.25"},
        {"task": "it-ru", "mixture": "en-de:0.75,it-ru:0.25"},
    ],
)
def test_a_task_that_one_model_alone_has_is_none(changed: dict[str, str]) -> None:
    assert not any("meant" in line for line in read_table(table(**changed)).warnings)


def test_a_weight_that_its_mixture_lacks_is_told_with_the_name_there() -> None:
    frame = table(mixture="en-de:0.75,en-fre:0.25").assign(weight=[0.25, 0.75, 0.5, 0.5, 0.75, 0.25] * 2)
    with pytest.raises(
        TableError, match=r"row 7: .* gives it 0; they must agree \(does `en-fre` in `mixture` mean `en-fr`"
    ):
        read_table(frame)


@pytest.mark.parametrize(("source", "task"), [("en-fr", "en-fre"), ("en-fre", "en-fr"), ("enfr", "enrf")])
def test_a_task_of_no_mixture_is_refused_with_the_source_that_has_no_values(source: str, task: str) -> None:
    shares = {"weight_en-de": [0.25, 0.5], f"weight_{source}": [0.5, 0.25], "weight_en-zh": 0.25}
    losses = {"loss_en-de": 3.0, f"loss_{task}": 3.1, "loss_en-zh": 3.2}
    line = f"row 1: column `loss_{task}`: no mixture names task `{task}`, and source `{source}` has no values"
    with pytest.raises(TableError, match=line):
        read_table(pd.DataFrame({"size": [1e5, 1e6], **shares, **losses}))
    long = table().assign(mixture=lambda rows: rows["mixture"].str.replace("en-fr", source))
    with pytest.raises(TableError, match=f"table: no mixture names task `{task}`"):
        read_table(long.replace({"task": {"en-fr": task}}))


@pytest.mark.parametrize("task", ["en-it", "it-ru"])
def test_a_task_without_weight_may_be_zero_shot(task: str) -> None:
    frame = table().replace({"task": {"en-fr": task}})
    assert set(read_table(frame).frame["task"]) == {"en-de", task}


def mixed(*mixtures: str, sizes: int = 5) -> pd.DataFrame:
    """Return losses of both sources of two mixtures at several sizes, and of others at one."""
    languages = ("en-de:0.5,en-fr:0.5", "en-it:0.5,en-es:0.5", "domain1:0.5,domain2:0.5")
    models = [(1e5 * (1 + place), mixture) for place in range(sizes) for mixture in languages]
    models += [(1e5, mixture) for mixture in mixtures]
    rows = [
        {"size": size, "mixture": mixture, "task": source.partition(":")[0], "value": 3.0 + place / 100}
        for place, (size, mixture) in enumerate(models)
        for source in mixture.split(",")
    ]
    return pd.DataFrame(rows)


def slips(frame: pd.DataFrame) -> list[str]:
    """Return the lines on names that may be misspelt."""
    return [line for line in read_table(frame).warnings if "meant" in line]


@pytest.mark.parametrize(
    "mixture",
    [
        "en-fi:1",
        "en-fi:0.5,en-fr:0.5",
        "en-fi:0.5,en-de:0.5",
        "domain3:0.5,en-de:0.5",
        "domain12:0.5,en-de:0.5",
        "domains1:1",  # a mixture by itself
    ],
)
def test_another_language_or_domain_is_no_slip(mixture: str) -> None:
    assert slips(mixed(mixture)) == []


def test_a_slip_in_both_seeds_of_a_run_is_one_models() -> None:
    frame = mixed("en-fre:0.5,en-de:0.5")
    seeds = pd.concat([frame.assign(seed=seed, run=f"{seed}-" + frame["mixture"]) for seed in (1, 2)])
    (line,) = slips(seeds.reset_index(drop=True))
    assert line.endswith("left out, for no other model names `en-fre`; is `en-fr` meant?")
    assert line.startswith("table: rows 32, 33, 64 and 65: ")


def test_two_sizes_are_the_cause_before_a_name() -> None:
    frame = mixed("en-fre:0.5,en-de:0.5", sizes=2)
    with pytest.raises(TableError, match="two sizes show no exponent"):
        recommend(frame, refits=0)


def test_each_models_mixture_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"source{place}" for place in range(100)]
    mixture, count = ",".join(f"{name}:0.01" for name in names), []
    rows = [
        {"architecture": "", "size": size, "mixture": mixture, "task": task, "row": 2, "role": "fit"}
        for size in range(30)
        for task in names
    ]
    read = module.parse_weights
    monkeypatch.setattr(module, "parse_weights", lambda text, where: count.append(text) or read(text, where))
    assert module.leave_misspelt_out(pd.DataFrame(rows))[1] == ()
    assert len(count) == 30
