"""`mnmt-data new`: what it writes, and the line that a mistake costs."""

import random
import tomllib

import pytest
from jsonschema.validators import Draft4Validator

from mnmt_data.prepare import new_study
from mnmt_data.study import NewRuns
from mnmt_data.study.schema import study_schema

GRIDS = {"sizes": ["d8"], "mixtures": ["en-de:1,en-fr:3"]}
TABLES = {
    "train": {"steps": 100, "learning_rate": 0.05},
    "sweep": {
        "sizes": {"d8": {"d_model": 8}, "d12": {"d_model": 12}},
        "fit": GRIDS,
        "held_out": [{**GRIDS, "sizes": ["d12"]}],
    },
}
NEW = ("new", "--tasks", "en-de,en-fr", "--corpus", "text")


def write_text(folder, task, pairs):
    rng = random.Random(task)
    folder.mkdir(exist_ok=True)
    for side in task.split("-"):
        words = ["".join(rng.choices("abcdefghij", k=5)) + side for _ in range(200)]
        lines = (f"{number} {' '.join(rng.choices(words, k=6))}\n" for number in range(pairs))
        (folder / f"train.{task}.{side}").write_text("".join(lines))


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Two tasks of text in `text/`; what the package that chooses runs is asked for."""
    asked = {}

    def choose(study, data, **arguments):
        asked.update(arguments, study=study, data=data.name)
        return NewRuns(tables=TABLES, count=2, sizes=(96, 216), steps=100, seconds=30.0)

    monkeypatch.setattr(new_study, "new_runs_chooser", lambda: choose)
    # Not the checks of other packages, of which some are installed.
    monkeypatch.setattr(new_study, "read_study", lambda path: None)
    write_text(tmp_path / "text", "en-de", 1200)
    write_text(tmp_path / "text", "en-fr", 2400)
    return asked


def test_a_study_holds_what_was_chosen(cli, tmp_path, asked):
    status, out, _ = cli(*NEW, "--minutes", "5", "--name", "mine")
    assert status == 0
    study = tomllib.loads((tmp_path / "studies/mine.toml").read_text())
    assert {name: study[name] for name in TABLES} == TABLES
    data = study["data"]
    assert (study["name"], data["tasks"], data["corpus"]) == ("mine", ["en-de", "en-fr"], "text")
    assert data["test_sentences"] == 1200 // 20
    assert study["goal"] == {"importance": {"en-de": 1, "en-fr": 1}}
    Draft4Validator(study_schema()).validate(study)
    assert "studies/mine.toml: 2 models of 96 to 216 parameters" in out
    assert "mnmt-laws report results/mine/runs" in out


def test_training_gets_a_part_of_the_time_and_of_the_text(cli, asked, monkeypatch):
    monkeypatch.setattr(new_study, "SAMPLE", 1500)
    cli(*NEW, "--minutes", "30")
    assert asked["shares"] == {"en-de": 1.0, "en-fr": 1500 / 2400}
    preparing = 3600 / new_study.PAIRS_A_SECOND
    assert asked["seconds"] == pytest.approx(1800 - preparing - 120 - 0.2 * 1800)


def test_both_directions_share_their_text(cli, tmp_path, asked):
    status, _, err = cli("new", "--tasks", "en-de,de-en", "--corpus", "text")
    assert (status, asked["shares"]) == (0, {"en-de": 1.0, "de-en": 1.0}), err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tasks", "en-de"), "give the text as --corpus FOLDER or --fetch SOURCE, one of them"),
        (("--tasks", "en", "--corpus", "text"), "--tasks: `tasks` must be language pairs such as 'en-de'"),
        (("--tasks", "en-de,en-it", "--corpus", "text"), "train.en-it.en: no such file; a task needs"),
        (("--tasks", "en-de", "--corpus", "none"), "there is no folder none"),
        ((*NEW[1:], "--name", "a/b"), "--name: must be a folder name such as 'en-de-small', but is 'a/b'"),
        ((*NEW[1:], "--out", "text/train.en-de.en"), "is there already; remove it, or give another"),
        ((*NEW[1:], "--minutes", "0"), "--minutes. Must be >= 1"),
        # Before anything is fetched:
        (("--tasks", "ende", "--fetch", "gettext"), "--tasks: `tasks` must be language pairs such as"),
        (
            ("--tasks", "en-de", "--fetch", "gettext", "--out", "text/train.en-de.en"),
            "is there already; remove it, or give another",
        ),
    ],
)
def test_a_mistake_costs_one_line(cli, asked, arguments, message):
    status, _, err = cli("new", *arguments)
    assert (status, message in err.splitlines()[-1]) == (2, True), err


def test_too_little_text_or_time_costs_one_line(cli, tmp_path, asked, monkeypatch):
    write_text(tmp_path / "text", "en-de", 300)
    assert "has 300 training pairs of en-de; a study needs 1,000 of each task" in cli(*NEW)[2]
    write_text(tmp_path / "text", "en-de", 1200)
    monkeypatch.setattr(new_study, "PAIRS_A_SECOND", 60)
    assert "preparing 3,600 pairs takes about 1.0 minutes; give --minutes 4" in cli(*NEW, "--minutes", "1")[2]


def test_without_mnmt_model_a_line_says_what_to_install(cli, asked, monkeypatch):
    monkeypatch.setattr(new_study, "new_runs_chooser", lambda: None)
    status, _, err = cli(*NEW)
    assert (status, err.splitlines()[-1]) == (
        2,
        "mnmt-data: a new study needs mnmt-model, which chooses its runs: pip install ./packages/mnmt-model",
    )
