from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import CommandLine
from corpora import CHINESE, GERMAN, Corpus
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from text_files import write

from mnmt_eval.compare import length_thirds
from mnmt_eval.metrics import BootstrapIntervals, holm, metric


@pytest.fixture
def german(tmp_path: Path) -> Path:
    return write_corpus(tmp_path, GERMAN)


def write_corpus(folder: Path, corpus: Corpus) -> Path:
    write(folder / "src", corpus.sources)
    write(folder / "ref", corpus.references[0])
    write(folder / "ref2", corpus.references[1])
    write(folder / "one.txt", corpus.hypotheses)
    write(folder / "two.txt", corpus.others)
    return folder


def texts(folder: Path) -> tuple[str | Path, ...]:
    """Name the German references and sources of a folder."""
    return "--reference", folder / "ref", "--source", folder / "src", "--task", "en-de"


@pytest.mark.parametrize("corpus", [GERMAN, CHINESE], ids=["de", "zh"])
def test_plain_files_get_the_values_of_sacrebleu(
    command_line: CommandLine, tmp_path: Path, corpus: Corpus
) -> None:
    write_corpus(tmp_path, corpus)
    tokenizer = {"de": "13a", "zh": "zh"}[corpus.target]
    scorers = [BLEU(tokenize=tokenizer), CHRF()]
    (ours,) = command_line.compared(
        *(tmp_path / "one.txt", tmp_path / "two.txt", "--reference", tmp_path / "ref"),
        *("--source", tmp_path / "src", "--task", f"en-{corpus.target}"),
    )
    assert ours["baseline"] == "one.txt"
    assert len(ours["metrics"]) == 2
    for each, scorer in zip(ours["metrics"], scorers, strict=True):
        scores = [
            scorer.corpus_score(lines, corpus.references[:1]).score
            for lines in (corpus.hypotheses, corpus.others)
        ]
        baseline, system = each["systems"]
        assert [baseline["value"], system["value"]] == scores
        assert baseline["against_baseline"] is None
        assert system["against_baseline"]["difference"] == system["value"] - baseline["value"]


def test_one_sentence_that_differs_parts_no_systems(command_line: CommandLine, tmp_path: Path) -> None:
    reference = ["der Hund sieht heute die Katze"] * 40
    write(tmp_path / "ref", reference)
    write(tmp_path / "a", ["der Hund sieht die Katze", *reference[1:]])
    write(tmp_path / "b", ["der Hund hat eine Katze", *reference[1:]])
    files = (tmp_path / "a", tmp_path / "b", tmp_path / "ref", "--reference", tmp_path / "ref")
    done = command_line.run("compare", *files, "--task", "en-de", "--metric", "bleu,chrf,ter")
    table = done.stdout.decode()
    assert table.count("1–3 ") == 9
    assert "*" not in re.sub(r"\* p <", "", table)
    assert "\n---" not in table
    assert "p of a paired permutation test, corrected for 3 pairs" in table


def test_the_interval_of_a_difference_is_the_bootstraps_where_the_test_is_exact(
    command_line: CommandLine, german: Path
) -> None:
    (ours,) = command_line.compared(german / "one.txt", german / "two.txt", *texts(german))
    for each in ours["metrics"]:
        measure = metric(each["metric"], target="de")
        sides = (GERMAN.hypotheses, GERMAN.others)
        statistics = [
            measure.sentence_statistics(lines, GERMAN.references[:1], GERMAN.sources) for lines in sides
        ]
        expected = BootstrapIntervals(measure, statistics).difference(0, 1)
        (pair,) = each["pairs"]
        assert "|ar:exact|" in pair["signature"]
        assert pair["interval"] == [expected.lower, expected.upper]


def test_lines_too_short_for_a_metric_are_remarked(command_line: CommandLine, tmp_path: Path) -> None:
    for name, line in {"ref": "Gut so.", "a": "Gut.", "src": "123"}.items():
        write(tmp_path / name, [line] * 3)
    files = (tmp_path / "a", "--reference", tmp_path / "ref", "--source", tmp_path / "src")
    options = ("--task", "en-de", "--metric", "bleu,chrf,language", "--language.candidates", "de,en")
    done = command_line.run("compare", *files, *options)
    assert done.status == 0
    assert done.stderr.splitlines() == [
        "a: bleu is 0, since no line has 4 tokens; chrf has no such limit",
        "a: language is 0, since no sentence has letters in its source",
    ]


def test_the_table_names_systems_intervals_and_signatures(command_line: CommandLine, german: Path) -> None:
    done = command_line.run(
        "compare",
        *(f"first={german / 'one.txt'}", german / "two.txt", *texts(german)),
        *("--baseline", "two.txt", "--metric", "chrf,ter", "--samples", "200"),
    )
    table = done.stdout.decode().splitlines()
    assert table[0] == "test en-de, 7 sentences"
    tested = [line for line in table if " first " in line]
    assert len(tested) == 2
    assert all(re.search(r" [+-]\d+\.\d\d \[[+-].*, [+-].*\] +\d\.\d{4}", line) for line in tested)
    assert [line.endswith("]") for line in table if " two.txt (baseline) " in line] == [True, True]
    titles = [re.split(r"  +", line)[2] for line in table if line.startswith("rank  ")]
    assert titles == ["chrf [95% interval]", "ter (lower is better) [95% interval]"]
    assert "[95% interval] of 200 bootstrap samples, seed 12345" in table
    assert f"chrf: {metric('chrf', target='de').signature}" in table


def test_all_pairs_are_tested_corrected_and_ranked(command_line: CommandLine, german: Path) -> None:
    write(german / "good.txt", GERMAN.references[0])
    systems = [german / name for name in ("one.txt", "two.txt", "good.txt")]
    arguments = (*systems, *texts(german), "--metric", "chrf")
    (ours,) = command_line.compared(*arguments)
    (each,) = ours["metrics"]
    pairs = {tuple(pair["systems"]): pair for pair in each["pairs"]}
    assert list(pairs) == [("one.txt", "two.txt"), ("one.txt", "good.txt"), ("two.txt", "good.txt")]
    corrected = holm([pair["p_value"] for pair in pairs.values()])
    assert [pair["corrected_p_value"] for pair in pairs.values()] == corrected
    for system in each["systems"][1:]:
        against, pair = system["against_baseline"], pairs["one.txt", system["system"]]
        assert {key: against[key] for key in pair if key != "systems"} == {
            key: value for key, value in pair.items() if key != "systems"
        }
        assert against["wins"] + against["ties"] + against["losses"] == 7
    (other,) = command_line.compared(*arguments, "--baseline", "good.txt")
    mirrored = {tuple(pair["systems"]): pair for pair in other["metrics"][0]["pairs"]}
    assert list(mirrored) == [("good.txt", "one.txt"), ("good.txt", "two.txt"), ("one.txt", "two.txt")]
    for (first, second), pair in mirrored.items():
        turned = pairs.get((second, first), pairs.get((first, second)))
        assert turned is not None
        assert (pair["p_value"], abs(pair["difference"])) == (turned["p_value"], abs(turned["difference"]))
    ranked = sorted(each["systems"], key=lambda system: -system["value"])
    assert [system["rank"][0] for system in ranked] == sorted(system["rank"][0] for system in ranked)
    table = command_line.run("compare", *arguments).stdout.decode()
    assert "corrected for 3 pairs (Holm 1979)" in table
    difference = f"{pairs['two.txt', 'good.txt']['difference']:+.2f}"
    assert re.search(rf"1 good\.txt .*{re.escape(difference)}", table)


def test_wins_are_sentences_with_a_better_score(command_line: CommandLine, german: Path) -> None:
    write(german / "worse.txt", ["x", *GERMAN.hypotheses[1:]])
    files = (german / "one.txt", german / "worse.txt", "--reference", german / "ref", "--task", "en-de")
    (ours,) = command_line.compared(*files, "--metric", "chrf,ter")
    for each in ours["metrics"]:
        against = each["systems"][1]["against_baseline"]
        assert (against["wins"], against["ties"], against["losses"]) == (0, 6, 1)


def test_too_few_draws_for_so_many_pairs_are_told(
    command_line: CommandLine, german: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systems = (german / "one.txt", german / "two.txt", f"three={german / 'ref2'}")
    files = (*systems, *texts(german), "--metric", "chrf")
    assert "so few draws" not in command_line.run("compare", *files, "--permutations", "9").stdout.decode()
    monkeypatch.setattr("mnmt_eval.metrics.exchanges._AT_MOST", 0)
    for permutations, expected in ((59, True), (60, False)):
        done = command_line.run("compare", *files, "--permutations", str(permutations))
        assert ("no difference of 3 can be significant with so few draws" in done.stdout.decode()) == expected


def test_groups_by_length_are_scored_apart(command_line: CommandLine, german: Path) -> None:
    files = (german / "one.txt", *texts(german))
    (ours,) = command_line.compared(*files, "--by", "length", "--metric", "chrf")
    groups = ours["metrics"][0]["systems"][0]["groups"]
    assert [(group["group"], group["sentences"]) for group in groups] == [("0-9", 6), ("10-19", 1)]
    long = [row for row, line in enumerate(GERMAN.sources) if len(line.split()) >= 10]
    alone = metric("chrf", target="de").score(
        [GERMAN.hypotheses[row] for row in long], [[GERMAN.references[0][row] for row in long]]
    )
    assert groups[1]["value"] == alone.value
    for by, expected in (("thirds", [3, 2, 2]), ("eighths", [1] * 7)):
        (parts,) = command_line.compared(*files, "--by", by, "--metric", "chrf")
        sizes = [group["sentences"] for group in parts["metrics"][0]["systems"][0]["groups"]]
        assert sizes == expected


def test_groups_are_tested_as_test_sets_of_their_own(command_line: CommandLine, german: Path) -> None:
    files = [german / name for name in ("one.txt", "two.txt", "ref", "src")]
    options = (*texts(german), "--metric", "chrf", "--samples", "200", "--permutations", "200")
    (ours,) = command_line.compared(*files[:2], *options, "--by", "thirds")
    of_group = ours["metrics"][0]["systems"][1]["groups"]
    short = [row for row, name in enumerate(length_thirds([len(s.split()) for s in GERMAN.sources]))
             if name == "short"]  # fmt: skip
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        write(file, [lines[row] for row in short])
    (alone,) = command_line.compared(*files[:2], *options)
    expected = alone["metrics"][0]["systems"][1]
    assert (of_group[0]["value"], of_group[0]["interval"]) == (expected["value"], expected["interval"])
    for key in ("difference", "interval", "p_value"):
        assert of_group[0]["against_baseline"][key] == expected["against_baseline"][key]
    corrected = holm([group["against_baseline"]["p_value"] for group in of_group])
    assert [group["against_baseline"]["corrected_p_value"] for group in of_group] == corrected


def test_languages_of_plain_files_are_those_of_the_runs_or_must_be_named(
    command_line: CommandLine, scored_results: Path, scored_run: Path, german: Path
) -> None:
    files = (german / "one.txt", "--reference", german / "ref", "--task", "en-de", "--metric", "language")
    done = command_line.run("compare", *files)
    assert done.status == 2
    assert (
        "must have at least 2 `--language.candidates`, all the languages that outputs may be in"
        in done.stderr
    )
    reference = scored_results / "data" / "text" / "test.xx-aa.aa"
    done = command_line.run(
        *("compare", scored_run, f"perfect={reference}", "--reference", reference),
        *("--task", "xx-aa", "--metric", "language"),
    )
    assert "does not know the language 'aa'" in done.stderr


REF = ("--reference", "{folder}/ref", "--task", "en-de")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}/none.txt", *REF], "none.txt: no such file or run; its folder holds "),
        (["{folder}/one.txt"], "name them with --reference"),
        (
            ["{folder}/one.txt", "--reference", "{folder}/ref"],
            "name the pair with --task, as in --task en-de",
        ),
        (["{folder}/one.txt", "--source", "{folder}/src", "--task", "en-de"], "only with references"),
        (
            ["{folder}/one.txt", "--reference", "{folder}/nothing", "--task", "en-de"],
            "nothing: no such file; its folder holds ",
        ),
        (
            ["{folder}/one.txt", "--reference", "{folder}/empty", "--task", "en-de"],
            "must have at least one line",
        ),
        (["{folder}/one.txt", *REF[:3], "german"], "must be SRC-TGT, such as en-de, but is 'german'"),
        (["{folder}/short.txt", *REF], "short.txt: must have 7 lines, one for each reference"),
        (
            ["{folder}/one.txt", *REF, "--source", "{folder}/short.txt"],
            "short.txt: must have 7 lines, as",
        ),
        (["{folder}/one.txt", *REF, "--metric", "bleu,rouge"], "but has 'rouge'."),
        (["{folder}/one.txt", *REF, "--baseline", "three"], "must be one of one.txt, but is 'three'"),
        (["{folder}/one.txt", *REF, "--test", "bootstrap"], "Unknown option: --test"),
        (["{folder}/one.txt", *REF, "--samples", "0"], "`--samples` must be at least 1, but is 0."),
        (["{folder}/one.txt", *REF, "--samples", "1000000000"], "`--samples` must be at most 10,000,000"),
        (["{folder}/one.txt", *REF, "--by", "length"], "need the sources; name them with --source"),
        (["{folder}/one.txt", *REF, "--by", "mood"], "but is 'mood'."),
        (["{folder}/one.txt", *REF, "--by", "origin"], "where its pairs were written is not known"),
        (["{folder}/one.txt", "{folder}/one.txt", *REF], "2 systems are called 'one.txt'; name them apart"),
        (["{folder}", *REF], "latin:1: not valid UTF-8"),  # each of its files is a system
        (["{folder}/latin", *REF], "latin:1: not valid UTF-8"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command_line: CommandLine, german: Path, arguments: list[str], message: str
) -> None:
    write(german / "short.txt", ["x"])
    write(german / "empty", [])
    (german / "latin").write_bytes("für\n".encode("latin-1") * 7)
    done = command_line.run("compare", *(a.replace("{folder}", str(german)) for a in arguments))
    assert (done.status, done.stdout) == (2, b"")
    (complaint,) = done.stderr.splitlines()
    assert complaint.startswith("mnmt-eval: ")
    assert message in complaint
