from pathlib import Path

import pytest

from mnmt_data.prepare.config import DataConfig, VocabConfig
from mnmt_data.synthetic import SyntheticConfig

CORPUS = {"tasks": ("en-de", "en-zh"), "corpus": Path("corpora/x")}


def test_target_languages_come_in_the_order_of_the_tasks():
    config = DataConfig(tasks=("de-en", "en-zh", "en-de", "fr-en"), corpus=Path("x"))
    assert config.target_languages == ("en", "zh", "de")


def test_zero_shot_tasks_are_evaluated_and_their_languages_counted():
    config = DataConfig(tasks=("en-de", "fr-en"), zero_shot=("fr-de", "it-es"), corpus=Path("x"))
    assert config.evaluated == ("en-de", "fr-en", "fr-de", "it-es")
    assert config.languages == ("en", "de", "fr", "it", "es")
    assert config.target_languages == ("de", "en", "es")


def test_no_tag_is_accepted_where_the_source_tells_the_target():
    config = DataConfig(tasks=("en-de", "fr-en"), corpus=Path("x"), target_tag="none")
    assert config.target_tag == "none"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": None}, "`corpus`, `files` or `synthetic` must be given."),
        (
            {"synthetic": SyntheticConfig(), "tasks": ("xx-aa",)},
            "`synthetic` must not be given together with `corpus` or `files`.",
        ),
        (
            {"files": {"trian": {"en-de": ("raw.tsv",)}}},
            "`files.trian` is no test set by its name; call it `train`, or otherwise.",
        ),
        (
            {"files": {"train_extra": {"en-de": ("raw.tsv",)}}},
            "`files.train_extra` is no test set by its name; call it `train`, or otherwise.",
        ),
        (
            {"files": {"tset": {"en-de": ("raw.tsv",)}}},
            "`files.tset` is no test set by its name; call it `test`, or otherwise.",
        ),
        (
            {"files": {"Dev": {"en-de": ("raw.tsv",)}}},
            "`files.Dev` is no test set by its name; call it `dev`, or otherwise.",
        ),
        (
            {"files": {"valid": {"en-de": ("raw.tsv",)}}},
            "`files.valid` is no test set by its name; call it `dev`, or otherwise.",
        ),
        ({"seed": -1}, "`seed` must be at least 0, but is -1."),
        ({"files": {"a b": {}}}, "`files` must be for test sets of letters and digits, but one is 'a b'."),
        (
            {"files": {"news": {"en-fr": ("x.tsv",)}}},
            "`files.news` must be of the tasks (en-de, en-zh), but one is of 'en-fr'.",
        ),
        ({"files": {"train": {"en-de": ()}}}, "`files.train.en-de` must name at least one source."),
        (
            {"files": {"news": {"en-de": ("x.tsv",)}}, "test_corpora": {"news": Path("x")}},
            "`files` and `test_corpora` must not both give a test set 'news'.",
        ),
        ({"tasks": ()}, "`tasks` must name at least one task, each once."),
        ({"tasks": ("en-de", "en-de")}, "`tasks` must name at least one task, each once."),
        ({"tasks": ("ende",)}, "`tasks` must be language pairs such as 'en-de', but one is 'ende'."),
        ({"tasks": ("en-en",)}, "`tasks` must be language pairs such as 'en-de', but one is 'en-en'."),
        ({"tasks": ("../en-de",)}, "`tasks` must be language pairs such as 'en-de', but one is '../en-de'."),
        ({"zero_shot": ("de",)}, "`zero_shot` must be language pairs such as 'en-de', but one is 'de'."),
        (
            {"zero_shot": ("de-zh", "en-zh")},
            "`zero_shot` must not name what is trained on, but en-zh is of `tasks`.",
        ),
        ({"zero_shot": ("de-zh", "de-zh")}, "`zero_shot` must name each task once."),
        (
            {"zero_shot": ("de-zh",), "files": {"news": {"zh-de": ("x.tsv",)}}},
            "`files.news` must be of the tasks (en-de, en-zh, de-zh), but one is of 'zh-de'.",
        ),
        ({"target_tag": "none"}, "`target_tag` must not be none where en is translated into de, zh."),
        (
            {"target_tag": "none", "tasks": ("de-en",), "zero_shot": ("de-fr",)},
            "`target_tag` must not be none where de is translated into en, fr.",
        ),
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
        (
            {
                "corpus": None,
                "synthetic": SyntheticConfig(pairs=("aa-xx", "xx-bb")),
                "tasks": ("aa-xx",),
                "zero_shot": ("aa-bb",),
            },
            "`zero_shot` must be among those the languages make (aa-xx, xx-bb).",
        ),
        (
            {"tasks": ("en-zh_Hans",), "files": {"train": {"en-zh_Hans": ("a",), "en-zh-Hans": ("b",)}}},
            "`files.train` names en-zh_Hans in two spellings; keep one.",
        ),
        ({"tasks": ("en-cn",)}, "`tasks`: 'cn' is no language code: Chinese is zh."),
        ({"zero_shot": ("english-zh",)}, "`zero_shot`: 'english' is no language code: English is en."),
    ],
)
def test_wrong_values_are_told(change, message):
    with pytest.raises(ValueError, match=r".") as raised:
        DataConfig(**{**CORPUS, **change})
    assert str(raised.value) == message


def test_tasks_that_only_begin_alike_are_accepted():
    assert DataConfig(tasks=("en-eng",), corpus=Path("x")).target_languages == ("eng",)


def test_made_up_languages_may_be_called_as_countries_are():
    languages = SyntheticConfig(languages=("by", "cn"))
    assert DataConfig(tasks=("xx-by", "xx-cn"), synthetic=languages).tasks == ("xx-by", "xx-cn")


def test_files_stand_in_for_a_corpus():
    config = DataConfig(tasks=("en-de",), files={"train": {"en-de": ("a.tsv", "b.{lang}")}})
    assert config.corpus is None
    assert config.languages == ("en", "de")


@pytest.mark.parametrize("name", ["train", "dev", "test", "news", "test2", "devtest", "wmt19", "ted", "text"])
def test_other_names_of_files_are_test_sets(name):
    assert list(DataConfig(tasks=("en-de",), files={name: {"en-de": ("a.tsv",)}}).files) == [name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 7}, "`size` must be at least 8, but is 7."),
        ({"sentences": 0}, "`sentences` must be at least 1, but is 0."),
        ({"temperature": 0.5}, "`temperature` must be at least 1, but is 0.5."),
        ({"temperature": float("nan")}, "`temperature` must be at least 1, but is nan."),
        ({"character_coverage": 0.5}, "`character_coverage` must be in [0.9, 1], but is 0.5."),
    ],
)
def test_wrong_values_of_the_vocabulary_are_told(change, message):
    with pytest.raises(ValueError, match=r".") as raised:
        VocabConfig(**change)
    assert str(raised.value) == message


def test_large_vocabularies_are_accepted():
    assert [VocabConfig(size=size).size for size in (32_000, 64_000, 128_000)] == [32_000, 64_000, 128_000]


def test_codes_may_have_a_script_or_a_region():
    files = {"train": {"en-zh-Hans": ("a.tsv",), "en-es_419": ("b.tsv",)}}
    config = DataConfig(tasks=("en-zh-Hans", "en-es_419"), files=files)
    assert config.tasks == ("en-zh_Hans", "en-es_419")
    assert config.target_languages == ("zh_Hans", "es_419")
    assert list(config.files["train"]) == ["en-zh_Hans", "en-es_419"]
