from pathlib import Path

import pytest

from mnmt_data.config import DataConfig, VocabConfig
from mnmt_data.synthetic import SyntheticConfig

CORPUS = {"tasks": ("en-de", "en-zh"), "corpus": Path("corpora/x")}


def test_target_languages_come_in_the_order_of_the_tasks():
    config = DataConfig(tasks=("de-en", "en-zh", "en-de", "fr-en"), corpus=Path("x"))
    assert config.target_languages == ("en", "zh", "de")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": None}, "`corpus` or `synthetic` must be given, and not both."),
        ({"synthetic": SyntheticConfig()}, "`corpus` or `synthetic` must be given, and not both."),
        ({"tasks": ()}, "`tasks` must name at least one task, each once."),
        ({"tasks": ("en-de", "en-de")}, "`tasks` must name at least one task, each once."),
        ({"tasks": ("ende",)}, "`tasks` must be language pairs such as 'en-de', but one is 'ende'."),
        ({"tasks": ("en-en",)}, "`tasks` must be language pairs such as 'en-de', but one is 'en-en'."),
        ({"tasks": ("../en-de",)}, "`tasks` must be language pairs such as 'en-de', but one is '../en-de'."),
        ({"dev_sentences": 0}, "`dev_sentences` must be at least 1, but is 0."),
        ({"test_sentences": -1}, "`test_sentences` must be at least 1, but is -1."),
        ({"max_length": 0}, "`max_length` must be at least 1, but is 0."),
        (
            {"test_corpora": {"dev": Path("x")}},
            "`test_corpora` must not be named train, dev or test, but one is 'dev'.",
        ),
        (
            {"corpus": None, "synthetic": SyntheticConfig(languages=("aa", "bb"))},
            "`tasks` must be among those the languages make (xx-aa, xx-bb).",
        ),
    ],
)
def test_wrong_values_are_told(change, message):
    with pytest.raises(ValueError, match=r".") as raised:
        DataConfig(**{**CORPUS, **change})
    assert str(raised.value) == message


def test_tasks_that_only_begin_alike_are_accepted():
    assert DataConfig(tasks=("en-eng",), corpus=Path("x")).target_languages == ("eng",)


def test_vocabulary_must_hold_the_special_ids():
    with pytest.raises(ValueError, match="`size` must be at least 8, but is 7"):
        VocabConfig(size=7)
