"""`mnmt-laws recommend`: what it prints, and the line that a mistake costs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import observe
from mnmt_laws.forecasts.rivals import find_rivals

Run = Callable[..., tuple[int, str, str]]

QUICK = ("--law", "capacity", "--refits", 10)
BOTH = "en-de:1,en-zh:1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", "0"), "--size. Must be > 0"),
        (("--size", "inf"), "`size` must be a finite number above 0 parameters, but is inf"),
        (("--tokens", "-1"), "--tokens. Must be > 0"),
        (("--tokens", "1e12"), "1e+12 need runs of several training lengths"),
        *(
            (("--budget", "1e13", *more), "leave the budget out, and give a size for advice at the table's")
            for more in ((), ("--size", "1e5"), ("--tokens", "1e8"))
        ),
        (
            ("--budget", "1e15", "--size", "1e5", "--tokens", "1e6"),
            "`size`, `tokens` and `budget` are too many: any two give the third",
        ),
        (("--law", "power"), "the power law predicts no mixtures of this table; leave out --law"),
        (("--law", "eq7"), "--law"),
        (("--prefer", "en-de:1"), "--prefer: must give each task a number above 0, as in en-de:1,en-zh:1"),
        (("--prefer", "x"), "as in en-de:1,en-zh:1, but is 'x'"),
        (("--prefer", "en-de:1,en-de:2,en-zh:1"), "--prefer: names a task twice"),
        (("--aim", "best"), '--aim. Choose from: "mean", "worst", "relative"'),
        (("--aim", "worst", "--targets", BOTH), "--aim and --targets are two questions; give one of them"),
        (("--prefer", BOTH, "--targets", BOTH), "--prefer and --targets are two questions; give one"),
        (("--budget", "1e9", "--targets", BOTH), "--budget and --targets: give one"),
        (("--targets", "de-ja:1"), "--targets: names 'de-ja'"),
        (("--targets", BOTH, "--amount", "0.1"), "--amount needs --size"),
        (("--targets", "en-de:-1", "--size", "1e5"), "`targets` must be above 0, but en-de's is -1"),
        (("--current", "en-de"), "--current: must be TASK:NUMBER between commas"),
        (("--current", "en-de:-1,en-zh:2", *QUICK), "`current` must be numbers of at least 0"),
        (("--near", "0.1"), "--near needs --current, the mixture to stay near to"),
        (("--near", "0", "--current", BOTH), "--near. Must be > 0"),
        (
            ("--near", "1e-9", "--current", "en-de:1", *QUICK),
            "no mixture keeps `least_weight`, `repeats` and",
        ),
        (("--unique", "en-de:1e6", *QUICK), "`unique_tokens` must give en-de, en-zh a number above 0 each"),
        (("--repeats", "2", *QUICK), "`repeats` needs the unique tokens of every source"),
        (("--amount", "nan"), "--amount: 'nan' must be a number"),
        (("--refits", "0.5"), "--refits: '0.5' must be a whole number"),
        (("--study", "s.toml", "--json"), "--study and --json: give one"),
        (("--study", "none.toml"), "none.toml"),
    ],
)
def test_a_wrong_option_costs_one_line_and_status_2(
    run: Run, csv: Path, options: tuple[object, ...], message: str
) -> None:
    status, out, err = run("recommend", csv, *options)
    assert (status, out) == (2, "")
    assert err.startswith("mnmt-laws: ")
    assert message in err
    assert err.count("\n") == 1


def test_advice_is_a_mixture_three_sentences_and_a_line_a_task(run: Run, csv: Path) -> None:
    status, out, _ = run("recommend", csv, *QUICK)
    mixture, advice, first, second, *rest = out.splitlines()
    assert status == 0
    weights = dict(item.split(":") for item in mixture.split(","))
    assert sum(map(float, weights.values())) == pytest.approx(1, abs=1e-12)
    assert advice.startswith("Train a model of ")
    assert "Any weight of en-" in advice
    assert "nats more, the scatter of one run about the law." in advice
    assert first.startswith("en-de: weight ")
    assert second.startswith("en-zh: weight ")
    assert "nats per token" in first
    assert rest[-2].startswith("expected regret: ")
    assert rest[-1] == "averaged over: capacity 100%"


def test_json_has_all_that_is_known(run: Run, csv: Path) -> None:
    status, out, _ = run("recommend", csv, *QUICK, "--prefer", "en-de:2,en-zh:1", "--json")
    document = json.loads(out)
    assert status == 0
    assert sum(document["weights"].values()) == pytest.approx(1)
    assert document["importance"] == pytest.approx({"en-de": 2 / 3, "en-zh": 1 / 3})
    assert {"size", "ranges", "amount", "regret", "predicted", "intervals", "limits", "warnings"} <= set(
        document
    )
    assert {"name", "weights", "loss", "interval", "chance"} <= set(document["rivals"][0])
    assert [row["law"] for row in document["forms"]] == ["capacity"]


def test_a_current_mixture_is_compared_with(run: Run, csv: Path) -> None:
    _, out, _ = run("recommend", csv, *QUICK, "--current", "en-de:0.95,en-zh:0.05")
    line = next(line for line in out.splitlines() if line.startswith("the current mixture: "))
    assert line.endswith("likely to be worse")


def test_one_task_has_a_model_and_no_weights(run: Run, tmp_path: Path) -> None:
    rows = [
        {"task": "all", "size": size, "tokens": tokens, "metric": "loss",
         "value": 0.4 + 300 * size**-0.34 + 900 * tokens**-0.28}
        for size in (1e6, 4e6, 1.6e7, 6.4e7) for tokens in (1e8, 4e8, 1.6e9, 6.4e9)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    command = ("recommend", tmp_path / "runs.csv", "--budget", "1e18", "--law", "chinchilla", "--refits", 0)
    _, out, _ = run(*command)
    mixture, advice, sizes, predicted, shares = out.splitlines()
    assert (mixture, shares) == ("all:1", "averaged over: chinchilla 100%")
    assert advice.startswith("Train a model of ")
    assert advice.endswith(" tokens on all.")
    assert "parameters at the same budget are expected to cost at most " in sizes
    assert predicted.startswith("all: loss ")


def test_targets_without_a_size_find_the_smallest_and_with_it_a_mixture(run: Run, csv: Path) -> None:
    command = ("recommend", csv, "--targets", "en-de:0.3,en-zh:0.4", *QUICK)
    smallest = json.loads(run(*command, "--json")[1])
    assert smallest["size"] > 0
    status, out, _ = run(*command, "--size", 2 * smallest["size"])
    assert status == 0
    assert "For the targets, train a model of" in out
    assert "target 0.3" in out
    _, out, _ = run("recommend", csv, "--targets", "en-de:0.01", *QUICK)
    assert out.startswith("no size up to 10000 times the largest has an even chance to meet them")


def test_a_study_of_the_advice_is_printed(run: Run, csv: Path, tmp_path: Path) -> None:
    base = tmp_path / "study.toml"
    base.write_text('name = "tiny"\n')
    status, out, _ = run("recommend", csv, *QUICK, "--size", "1e6", "--study", base)
    sweep = tomllib.loads(out)["sweep"]
    assert status == 0
    assert sum(sweep["fit"]["mixtures"][0].values()) == pytest.approx(1)
    assert sweep["fit"]["sizes"] == list(sweep["sizes"])


def test_models_of_one_mixture_cannot_say_what_another_would_do(run: Run, tmp_path: Path) -> None:
    rows = [
        {"task": task, "size": size, "weight": 0.5, "value": 1 + size**-0.3, "metric": "loss"}
        for task in "ab"
        for size in (1e4, 1e5, 1e6)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    status, _, err = run("recommend", tmp_path / "runs.csv")
    assert (status, err.count("\n")) == (2, 1)
    assert "no law that predicts mixtures can be fitted; add runs of other mixtures" in err


def test_models_of_one_size_get_the_law_without_sizes_from_every_command(run: Run, tmp_path: Path) -> None:
    rows = [
        {"task": task, "size": 1e5, "mixture": f"a:{p},b:{1 - p}", "weight": share, "value": 3 - share**0.5}
        for p in (0.25, 0.5, 0.75)
        for task, share in (("a", p), ("b", 1 - p))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    for command in ("recommend", "design", "frontier", "fit"):
        status, out, err = run(command, tmp_path / "runs.csv", "--refits", 10)
        assert status == 0
        assert "warning: all models have 100,000 parameters: the transfer law does not know size" in err
        assert out.startswith("a:0.5") or command != "recommend"
    assert "rest on transfer 100%" in run("compare", tmp_path / "runs.csv")[1]


@pytest.mark.parametrize(
    "command",
    [("fit", "--refits", 10), ("compare",), pytest.param(("report", "--refits", 10), marks=pytest.mark.slow)],
)
def test_models_of_one_size_and_several_lengths_have_laws_of_the_longest(
    run: Run, tmp_path: Path, command: tuple[str | int, ...]
) -> None:
    cells = [(p, tokens) for p in (0.25, 0.5, 0.75) for tokens in (1e8, 2e8, 4e8)]
    rows = [
        {"task": task, "size": 1e5, "mixture": f"a:{p},b:{1 - p}", "weight": share, "tokens": tokens,
         "value": 3 - share**0.5 + (1e8 / tokens) ** 0.5}
        for p, tokens in cells
        for task, share in (("a", p), ("b", 1 - p))
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    line = (
        "warning: models of one size were trained for 1e+08 to 4e+08 tokens: laws are fitted at the longest"
    )
    status, _, err = run(command[0], tmp_path / "runs.csv", *command[1:])
    assert (status, line in err) == (0, True), err


def two_lengths(sizes: Sequence[float]) -> pd.DataFrame:
    """Return losses of two tasks after 1e8 tokens, and of the smaller two models after 4e8."""
    cells = [(size, 1e8, p) for size in sizes for p in (0.2, 0.5, 0.8)]
    cells += [(size, 4e8, p) for size, _, p in cells if size in sizes[:2]]
    rows = [
        {"task": task, "size": size, "weight": w, "tokens": tokens, "value": loss_of(task, size, tokens, w)}
        for size, tokens, p in cells
        for task, w in {"de": p, "fr": 1 - p}.items()
    ]
    return pd.DataFrame(rows).assign(metric="loss")


def loss_of(task: str, size: float, tokens: float, weight: float) -> float:
    amplitude = {"de": 1.0, "fr": 0.3}[task]
    return float(1.5 + amplitude * (30 * (weight**0.5 * size) ** -0.2 + 600 * (weight * tokens) ** -0.3))


def test_two_lengths_bear_laws_of_length_and_no_others_where_few_sizes_are_long() -> None:
    laws = find_rivals(observe(two_lengths((1e6, 4e6, 1e7, 4e7))))
    assert {"length", "share"} <= {law.name for law in laws}
    assert all(law.knows_length for law in laws)


@pytest.mark.slow
def test_two_lengths_bear_advice_that_says_the_length_is_untested(run: Run, tmp_path: Path) -> None:
    two_lengths((1e6, 4e6, 1e7, 4e7)).to_csv(tmp_path / "runs.csv", index=False)
    command = ("recommend", tmp_path / "runs.csv", "--refits", 2, "--tokens", 8e8, "--size", 4e7, "--json")
    status, out, _ = run(*command)
    assert status == 0
    answer = json.loads(out)
    assert answer["warnings"][-1].startswith("the training length is 2.0 times the longest fitted")
    assert answer["warnings"][-1].endswith("no back-test tells how far it errs there.")
    weight = answer["weights"]["de"]
    costs = [loss_of("de", 4e7, 8e8, p) + loss_of("fr", 4e7, 8e8, 1 - p) for p in np.arange(0.05, 1, 0.01)]
    cost = loss_of("de", 4e7, 8e8, weight) + loss_of("fr", 4e7, 8e8, 1 - weight)
    assert cost - min(costs) < 0.01 < costs[45] - min(costs)  # which equal weights cost
    low, high = answer["intervals"]["de"]
    assert low < loss_of("de", 4e7, 8e8, weight) < high


def test_two_sizes_are_named_as_what_keeps_advice_away(run: Run, tmp_path: Path) -> None:
    two_lengths((1e6, 4e6)).to_csv(tmp_path / "runs.csv", index=False)
    status, _, err = run("recommend", tmp_path / "runs.csv")
    assert status == 2
    assert "can be fitted; two sizes show no exponent; add runs of a third" in err


@pytest.mark.parametrize(
    ("tasks", "weight", "cause"),
    [
        (["de", "fr"] * 6 + ["frr"], 0.5, "no law that predicts mixtures can be fitted; add runs of other"),
        (["de", "fr"] * 6, 1.0, "every weight is 1; if a column holds the weights, name it by --column"),
    ],
)
def test_what_keeps_laws_of_mixtures_away_is_named(
    run: Run, tmp_path: Path, tasks: list[str], weight: float, cause: str
) -> None:
    sizes = [1e6 * 2 ** (place // 2) for place in range(len(tasks))]
    frame = pd.DataFrame({"params": sizes, "task": tasks, "weight": weight})
    frame.assign(value=[3 + 9 / size**0.1 for size in sizes]).to_csv(tmp_path / "t.csv", index=False)
    status, _, err = run("recommend", tmp_path / "t.csv")
    assert status == 2
    assert cause in err.splitlines()[-1]
    assert "taken from other columns: size from `params`" in err
