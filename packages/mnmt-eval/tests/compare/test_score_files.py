"""Scores made elsewhere are a metric like any other, in every form that tools write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine
from text_files import write

from mnmt_eval.metrics import holm

LINES = 30
RNG = np.random.default_rng(5)
SCORES = {"one": RNG.normal(0.7, 0.1, LINES).round(4), "two": RNG.normal(0.6, 0.1, LINES).round(4)}
OUTPUTS = {name: [f"Satz {number} von {name}" for number in range(LINES)] for name in SCORES}
SOURCES = [f"sentence {number}" for number in range(LINES)]
FEW = ("--samples", "200", "--permutations", "200")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, lines in OUTPUTS.items():
        write(tmp_path / name, lines)
    write(tmp_path / "src", SOURCES)
    columns = {"id": range(LINES), **SCORES}
    rows = [list(map(str, row)) for row in (columns, *zip(*columns.values(), strict=True))]
    write(tmp_path / "table.tsv", ["\t".join(row) for row in rows])
    write(tmp_path / "table.csv", [",".join(row) for row in rows])
    records = [dict(zip(SCORES, row, strict=True)) for row in zip(*SCORES.values(), strict=True)]
    write(tmp_path / "table.jsonl", map(json.dumps, records))
    for name, scores in SCORES.items():
        write(tmp_path / f"{name}.numbers", map(str, scores))
        predictions = zip(SOURCES, OUTPUTS[name], scores, strict=True)
        keys = ("source", "hypothesis", "prediction")
        write(
            tmp_path / f"{name}.jsonl", [json.dumps(dict(zip(keys, row, strict=True))) for row in predictions]
        )
    comet = {
        f"/data/{name}.txt": [
            {"src": src, "mt": mt, "COMET": score}
            for src, mt, score in zip(SOURCES, OUTPUTS[name], SCORES[name], strict=True)
        ]
        for name in ("two", "one")
    }
    (tmp_path / "comet.json").write_text(json.dumps(comet, indent=4), encoding="utf-8")
    return tmp_path


FORMS = [
    ["x=table.tsv"],
    ["x=table.csv"],
    ["x=table.jsonl"],
    ["x=one.numbers", "x=two.numbers"],
    ["x=two.jsonl", "x=one.jsonl"],
    ["x=comet.json"],
]


@pytest.mark.parametrize("files", FORMS, ids=lambda files: files[0])
def test_every_form_has_the_same_numbers_without_references(
    command_line: CommandLine, folder: Path, files: list[str]
) -> None:
    options = [each for file in files for each in ("--scores", file)]
    (comparison,) = command_line.compared("one", "two", *options, *FEW)
    (metric,) = comparison["metrics"]
    assert metric["metric"] == "x"
    one, two = metric["systems"]
    assert [one["value"], two["value"]] == pytest.approx([scores.mean() for scores in SCORES.values()])
    against = two["against_baseline"]
    assert against["losses"] == (SCORES["two"] < SCORES["one"]).sum()
    assert against["p_value"] == pytest.approx(sign_flips(SCORES["two"] - SCORES["one"]), abs=0.04)
    assert re.fullmatch(r"scores:[\w.-]+\|sha256:[0-9a-f]{12}", one["signature"])


def sign_flips(gaps: np.ndarray) -> float:
    """The p-value of a paired permutation test, by draws of its own."""
    signs = np.random.default_rng(0).choice([-1, 1], size=(20_000, len(gaps)))
    return float((np.abs((signs * gaps).mean(axis=1)) >= abs(gaps.mean()) - 1e-12).mean())


def test_scores_stand_beside_other_metrics_with_ranks_and_groups(
    command_line: CommandLine, folder: Path
) -> None:
    write(folder / "ref", [f"Satz {number} von beiden" for number in range(LINES)])
    write(folder / "three", [f"Satz {number}" for number in range(LINES)])
    write(folder / "judged.tsv", ["one\ttwo\tthree", *["0.9\t0.5\t0.1", "0.8\t0.5\t0.2"] * 15])
    files = ("one", "two", "three", "--reference", "ref", "--source", "src", "--task", "en-de")
    (comparison,) = command_line.compared(*files, "--scores", "judged.tsv", "--by", "thirds", *FEW)
    assert [each["metric"] for each in comparison["metrics"]] == ["bleu", "chrf", "judged"]
    judged = comparison["metrics"][2]
    assert [system["rank"] for system in judged["systems"]] == [[1, 1], [2, 2], [3, 3]]
    assert [pair["corrected_p_value"] for pair in judged["pairs"]] == holm(
        [pair["p_value"] for pair in judged["pairs"]]
    )
    assert [group["sentences"] for group in judged["systems"][0]["groups"]] == [10, 10, 10]


@pytest.mark.parametrize(
    ("name", "options"), [("metricx24", ()), ("errors", ("--lower-is-better", "errors"))]
)
def test_lower_may_be_better(
    command_line: CommandLine, folder: Path, name: str, options: tuple[str, ...]
) -> None:
    arguments = ("one", "two", "--scores", f"{name}=table.tsv", *options)
    (metric,) = command_line.compared(*arguments, *FEW)[0]["metrics"]
    assert metric["higher_is_better"] is False
    assert [system["rank"][0] for system in metric["systems"]] == [2, 1]
    assert (
        f"{name} (lower is better) [95% interval]" in command_line.run("compare", *arguments).stdout.decode()
    )


def test_sentences_that_lack_a_score_are_left_out_of_all_systems_and_counted(
    command_line: CommandLine, folder: Path
) -> None:
    rows = [
        ["" if i % 3 else str(SCORES["one"][i]), "None" if i == 0 else str(SCORES["two"][i])]
        for i in range(LINES)
    ]
    write(folder / "human.tsv", ["one\ttwo", *map("\t".join, rows)])
    done = command_line.run("compare", "one", "two", "--scores", "human.tsv", *FEW, "--json")
    (metric,) = json.loads(done.stdout)["comparisons"][0]["metrics"]
    assert done.stderr.splitlines() == ["one, two: 21 of 30 sentences lack a score and are left out of human"]
    scored = [i for i in range(LINES) if i % 3 == 0 and i]
    for system in metric["systems"]:
        assert system["value"] == pytest.approx(SCORES[system["system"]][scored].mean())
    against = metric["systems"][1]["against_baseline"]
    assert against["wins"] + against["ties"] + against["losses"] == len(scored)


def test_a_page_needs_no_references(command_line: CommandLine, folder: Path) -> None:
    arguments = ("one", "two", "--scores", "qe=table.tsv", *FEW)
    for number, more in enumerate(((), ("--source", "src", "--task", "en-de"))):
        done = command_line.run("compare", *arguments, *more, "--page", f"page{number}")
        assert done.status == 0, done.stderr
        page = (folder / f"page{number}" / "index.html").read_text(encoding="utf-8")
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
        (text,) = data["texts"]
        assert (text["references"], set(text["buckets"])) == ([], {"length"} if more else set())
        assert text["systems"][0]["sentence_scores"] == SCORES["one"].tolist()
        assert text["systems"][0]["symptom_counts"] == {}


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["one\ttwo", "1\tgood"], [], r"s\.tsv:2: two must be a number, or None .*, but is 'good'"),
        (["one\ttwo", "1\tinf"], [], r"s\.tsv:2: two must be a number"),
        (["one\ttwo", "1\t2"], [], r"s\.tsv: must have 30 scores of one, one for each sentence, but has 1\."),
        (["one\ttwo", *["\t2"] * 30], [], r"s\.tsv: no sentence has a score of s for every system"),
        (["one\tthree", *["1\t2"] * 30], [], r"s\.tsv: must hold scores of two as it is here, .* of one;"),
        (["a\tb", "1\t2"], [], r"s\.tsv: must have columns of one, two, s, score, .* but has a, b\."),
        (["one\ttwo", "1"], [], r"s\.tsv:2: must have 2 columns"),
        (["0.5"] * 30, [], r"s\.tsv: must hold scores of two as it is here"),
        (["1", "x"], [], r"s\.tsv:2: score must be a number"),
        (["id\tone\ttwo", "2\t1\t1", "1\t0\t0"], [], r"s\.tsv: .* in their order; sort its rows by id\."),
        (["seg_id\tscore", "2\t1", "1\t0"], [], r"s\.tsv: .* in their order; sort its rows by seg_id\."),
        (["system\tscore", "one\t1"], [], r"s\.tsv: has a row for each system; make a column for each"),
        (["one\ttwo", *["1\t2"] * 30], ["--lower-is-better", "ter"], "`--lower-is-better` must name"),
        (["one\ttwo", *["1\t2"] * 30], ["--scores", "gone"], "gone: no such file"),
        (["one\ttwo", *["1\t2"] * 30], ["--metric", "chrf"], "chrf: needs references; .* --reference"),
        (['{"/a": [1]}'], [], r"s\.tsv: must have columns of .*, but has /a\."),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(
    command_line: CommandLine, folder: Path, lines: list[str], options: list[str], message: str
) -> None:
    write(folder / "s.tsv", lines)
    done = command_line.run("compare", "one", "two", "--scores", "s.tsv", *options, *FEW)
    assert (done.status, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert re.search(message, line), line


def test_scores_of_other_outputs_are_refused(command_line: CommandLine, folder: Path) -> None:
    write(folder / "two", ["anders", *OUTPUTS["two"][1:]])
    done = command_line.run("compare", "one", "two", "--scores", "comet.json", *FEW)
    assert (
        "comet.json: must hold scores of two as it is here, but holds those of /data/two.txt" in done.stderr
    )
    again = [json.dumps({"hypothesis": line, "prediction": 1}) for line in OUTPUTS["one"]]
    write(folder / "again.jsonl", again)
    done = command_line.run("compare", "one", "--scores", "x=one.jsonl", "--scores", "x=again.jsonl", *FEW)
    assert "again.jsonl: has other scores of one than one.jsonl; name one." in done.stderr
    done = command_line.run("compare", "one", "--scores", "x=one.numbers", "--scores", "x=two.numbers", *FEW)
    assert "two.numbers: is one file too many for x of 1 systems" in done.stderr


def test_computed_metrics_and_scores_have_names_apart(command_line: CommandLine, folder: Path) -> None:
    write(folder / "ref", OUTPUTS["one"])
    arguments = ("one", "--reference", "ref", "--task", "en-de", "--scores", "bleu=one.numbers")
    assert "two metrics are called 'bleu'" in command_line.run("compare", *arguments).stderr
