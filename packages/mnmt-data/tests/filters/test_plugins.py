"""Filters that other distributions offer."""

import os
import pickle

import pytest

from mnmt_data.errors import DataError, StudyError
from mnmt_data.filters import CleanConfig, Cleaner, clean_block
from mnmt_data.prepare import prepare_study, workers
from mnmt_data.readers.reader import Block
from mnmt_data.study import read_study

SOURCE = '''
import os
import numpy as np

class Word:
    """Drops pairs whose source has a word, in one process or in any but one."""

    def __init__(self, settings, task, languages):
        unknown = settings.keys() - {"word", "not_in"}
        if unknown:
            raise ValueError(f"knows no `{min(unknown)}`; the valid ones are word, not_in")
        self.word = settings["word"]
        self.elsewhere = os.getpid() != settings.get("not_in")
        self.asked = (task, languages)

    def __call__(self, src, tgt):
        return np.array([self.elsewhere and self.word in line.split() for line in src], dtype=bool)

def numbers(settings, task, languages):
    return lambda src, tgt: np.zeros(len(src) + settings["more"], dtype=settings["dtype"])
'''
POINTS = (
    "[mnmt_data.filters]\nword = acme:Word\nnumbers = acme:numbers\nratio = acme:Word\nlost = acme:Lost\n"
)
STUDY = """
name = "small"
[data]
tasks = ["en-de"]
corpus = "{folder}/corpus"
dev_sentences = 5
test_sentences = 5
[data.vocab]
kind = "word"
size = 300
[data.clean.plugins.word]
word = "{word}"
"""


WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu")


@pytest.fixture
def acme(install):
    install("acme", POINTS, SOURCE)


def cleaner(**plugins):
    return Cleaner(CleanConfig(plugins=plugins), "en-de", languages=("en", "de", "fr"))


def block(*src):
    return Block(src=list(src), tgt=[f"{line}!" for line in src], first=0)


@pytest.mark.usefixtures("acme")
def test_a_filter_drops_counts_and_shows_as_the_others_do():
    clean = clean_block(block("a bad day", "", "a day", "bad"), cleaner(word={"word": "bad"}))
    assert clean.src == ["a day"]
    assert list(clean.report.counts) == ["empty", "identical", "too long", "ratio", "word"]
    assert clean.report.counts["word"] == 2
    assert clean.report.samples["word"] == (("a bad day", "a bad day!"), ("bad", "bad!"))


@pytest.mark.usefixtures("acme")
def test_a_pickled_filter_is_made_again_from_its_settings():
    filters = cleaner(word={"word": "bad"})
    pickled = pickle.dumps(filters)
    assert b"acme" not in pickled
    assert clean_block(block("bad", "good"), pickle.loads(pickled)).src == ["good"]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"word": {}}, "[data.clean.plugins.word] `word` is missing."),
        (
            {"word": {"word": "x", "wort": 1}},
            "[data.clean.plugins.word] knows no `wort`; the valid ones are word, not_in.",
        ),
        (
            {"none": {}},
            "[data.clean.plugins.none] no installed distribution offers a filter `none`; "
            "those that are offered: lost, numbers, ratio, word.",
        ),
        (
            {"ratio": {}},
            "mnmt_data.filters: `ratio` is offered by mnmt-data and acme 1.0; uninstall all but one.",
        ),
        (
            {"lost": {}},
            "mnmt_data.filters: `lost = acme:Lost` of acme 1.0 cannot be loaded "
            "(module 'acme' has no attribute 'Lost'); mend or uninstall it.",
        ),
        (
            {"word": {"word": {1}}},
            "[data.clean.plugins.word] must hold strings, numbers, booleans, arrays and tables alone.",
        ),
    ],
)
def test_mistakes_are_found_before_any_text_is_read(plugins, message):
    with pytest.raises(DataError) as raised:
        cleaner(**plugins)
    assert str(raised.value) == message


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("more", "dtype", "answer"), [(1, "bool", r"bool of shape \(3,\)"), (0, "int8", r"int8 of shape \(2,\)")]
)
def test_an_answer_that_is_not_one_truth_value_a_pair_is_refused(more, dtype, answer):
    filters = cleaner(numbers={"more": more, "dtype": dtype})
    with pytest.raises(
        DataError, match=rf"`numbers = acme:numbers` of acme 1\.0 gave {answer} for 2 pairs; it must"
    ):
        clean_block(block("a", "b"), filters)


@pytest.mark.usefixtures("acme")
def test_what_a_filter_raises_names_its_distribution():
    filters = cleaner(numbers={"more": 0, "dtype": "no type"})
    with pytest.raises(TypeError) as raised:
        clean_block(block("a"), filters)
    assert raised.value.__notes__ == ["The filter is `numbers` of acme 1.0."]


@pytest.fixture
def study(tmp_path):
    (tmp_path / "corpus").mkdir()
    lines = [f"{WORDS[row % 8]} {WORDS[row // 8]} {'odd' if row % 2 else 'even'}" for row in range(64)]
    for language in ("en", "de"):
        text = "".join(f"{language} {line}\n" for line in lines)
        (tmp_path / f"corpus/train.en-de.{language}").write_text(text)

    def run(word, more="", jobs=1):
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(folder=tmp_path, word=word) + more)
        return prepare_study(read_study(path), tmp_path / "out", jobs=jobs)

    return run


@pytest.mark.usefixtures("acme")
def test_worker_processes_make_their_filters_themselves(study, monkeypatch):
    monkeypatch.setattr(workers, "STARTING_PAIRS", 0)
    report = study("odd", f"not_in = {os.getpid()}", jobs=2).description.filters["en-de"]
    assert report.counts["word"] == 32
    assert all("odd" in src for src, _ in report.samples["word"])


def test_a_filter_its_version_and_its_settings_make_other_data(study, install):
    metadata = install("acme", POINTS, SOURCE) / "METADATA"
    odd, even = study("odd").fingerprint, study("even").fingerprint
    assert study("even").fingerprint == even
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    assert len({odd, even, study("odd").fingerprint}) == 3


def test_a_filter_that_is_not_installed_is_one_line_of_the_study(study):
    with pytest.raises(
        DataError, match=r"study\.toml: \[data\.clean\.plugins\.word\] no installed distribution"
    ):
        study("odd")


@pytest.mark.usefixtures("acme")
def test_settings_are_a_table(study):
    with pytest.raises(StudyError, match=r"`data\.clean\.plugins\['other'\]` must be a table, but is 3"):
        study("odd", "[data.clean]\nplugins.other = 3")
