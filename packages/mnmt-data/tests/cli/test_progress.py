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


def test_progress_in_a_log_is_a_line_from_time_to_time(monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["mnmt_data.cli.progress"], "LINE_SECONDS", -1)
    with ProgressBar("pairs") as progress:
        for stage, number in (("clean", 3), ("clean", 4), ("encode", 1)):
            progress(stage, number)
    assert capsys.readouterr().err == "clean: 3 pairs\nclean: 7 pairs\nencode: 1 pairs\n"
