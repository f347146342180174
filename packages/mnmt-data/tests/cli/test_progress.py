import json
import sys

import pytest

from mnmt_data.cli.progress import ProgressBar

STUDY = """
name = "made"
[data]
tasks = ["xx-aa", "xx-bb"]
[data.vocab]
kind = "word"
size = 100
[data.synthetic]
concepts = 50
syllable_inventory = 16
train_sentences = 200
dev_sentences = 10
test_sentences = 10
"""


@pytest.fixture
def study(tmp_path):
    (tmp_path / "made.toml").write_text(STUDY, encoding="utf-8")
    return "made.toml"


def test_prepare_writes_to_results_and_tells_counts(cli, study, tmp_path):
    status, out, err = cli("prepare", study)
    assert status == 0
    assert (tmp_path / "results/made/data/prepared.json").is_file()
    assert (tmp_path / "results/made/corpus/corpus.json").is_file()
    (train,) = [line for line in out.splitlines() if line.startswith("train       xx-bb")]
    assert train.split()[2] == "200"
    assert all(len(line) <= 100 for line in out.splitlines())
    assert out.endswith("prepared: results/made/data\n")
    assert "Traceback" not in err


def test_prepare_again_says_that_nothing_has_changed(cli, study):
    cli("prepare", study, "-o", "elsewhere")
    status, _, err = cli("prepare", study, "--out", "elsewhere")
    assert status == 0
    assert err.endswith("up to date: elsewhere/data\n")


def test_inspect_prints_only_json_when_asked(cli, study):
    cli("prepare", study)
    status, out, err = cli("inspect", "results/made/data", "--json", "--samples", "2")
    assert (status, err) == (0, "")
    described = json.loads(out)
    assert described["tasks"] == ["xx-aa", "xx-bb"]
    assert described["splits"]["test"]["xx-aa"]["pairs"] == 10
    assert len(described["samples"]["xx-bb"]) == 2


def test_inspect_shows_pairs(cli, study):
    cli("prepare", study)
    status, out, _ = cli("inspect", "results/made/data", "--samples", "1")
    assert status == 0
    assert out.count("\nxx-aa: ") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "none.toml"], "mnmt-data: none.toml: no such study file."),
        (
            ["prepare", "made.toml", "--output", "x"],
            "mnmt-data: Unknown option: --output. Did you mean --out?",
        ),
        (
            ["inspect", "results"],
            "mnmt-data: results/prepared.json: no prepared data here; run `mnmt-data prepare` first.",
        ),
        (["inspect", "x", "--samples", "-1"], 'mnmt-data: Invalid value "-1" for --samples. Must be >= 0.'),
        (
            ["fetch", "libreoffice-help", "--langs", "de,fr"],
            "mnmt-data: --langs must be 'en' and other languages, such as en,de,zh-CN, but is 'de,fr'.",
        ),
        (
            ["fetch", "debian-descriptions", "--langs", "en"],
            "mnmt-data: --langs must be 'en' and other languages, such as en,de,zh-CN, but is 'en'.",
        ),
    ],
)
def test_mistakes_are_one_line_and_2(cli, study, arguments, message):
    assert cli(*arguments) == (2, "", f"{message}\n")


def test_wrong_value_in_the_study_names_file_and_key(cli, tmp_path):
    (tmp_path / "bad.toml").write_text(STUDY.replace('"word"', '"words"'), encoding="utf-8")
    status, out, err = cli("prepare", "bad.toml")
    assert (status, out) == (2, "")
    assert err == (
        "mnmt-data: bad.toml: `data.vocab.kind` must be one of 'unigram', 'bpe', 'word', but is 'words'.\n"
    )


def test_system_without_apt_is_one_line_and_2(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, err = cli("fetch", "libreoffice-help", "--langs", "en,de")
    assert status == 2
    assert err.splitlines()[-1].startswith("mnmt-data: apt-get: no such command")


def test_progress_in_a_log_is_a_line_from_time_to_time(monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["mnmt_data.cli.progress"], "LINE_SECONDS", -1)
    with ProgressBar("pairs") as progress:
        for stage, number in (("clean", 3), ("clean", 4), ("encode", 1)):
            progress(stage, number)
    assert capsys.readouterr().err == "clean: 3 pairs\nclean: 7 pairs\nencode: 1 pairs\n"
