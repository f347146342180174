from itertools import combinations

import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.config import FetchConfig

AVAILABLE = ["de", "en", "fr", "pt-br", "pt", "zh-cn", "zh-tw"]


def pairs(**options):
    return ["-".join(pair) for pair in FetchConfig(**options).select(AVAILABLE, corpus="x").pairs]


@pytest.mark.parametrize(
    ("langs", "wanted", "expected"),
    [
        ("en,de,zh-CN", None, ["en-de", "en-zh"]),
        ("de,en,fr", None, ["en-de", "en-fr"]),
        ("en,de,fr", "all", ["en-de", "en-fr", "de-fr"]),
        ("de,fr,pt", "all", ["de-fr", "de-pt", "fr-pt"]),
        ("en,de,fr", "fr-de, en-fr", ["fr-de", "en-fr"]),
        ("de,fr", "de-fr", ["de-fr"]),
        ("zh-CN,zh_tw,pt-BR", "zh_CN-zh_TW,pt-zh_TW", ["zh_CN-zh_TW", "pt-zh_TW"]),
        ("de,zh-CN", "de-zh_CN", ["de-zh"]),
        ("all", None, ["en-de", "en-fr", "en-pt", "en-pt_BR", "en-zh_CN", "en-zh_TW"]),
        ("all", "pt_BR-pt", ["pt_BR-pt"]),
    ],
)
def test_pairs(langs, wanted, expected):
    assert pairs(langs=langs, pairs=wanted) == expected


def test_all_pairs_of_all_languages():
    codes = ["en", "de", "fr", "pt", "pt_BR", "zh_CN", "zh_TW"]
    assert pairs(langs="all", pairs="all") == ["-".join(pair) for pair in combinations(codes, 2)]


def test_names_are_those_of_the_corpus():
    selection = FetchConfig(langs="zh_CN,en-US,de").select(AVAILABLE, corpus="x")
    assert selection.names == {"zh": "zh-cn", "en": "en", "de": "de"}


def test_selection_of_some_languages():
    selection = FetchConfig(langs="en,de,fr", pairs="all").select(AVAILABLE, corpus="x").only(["en", "fr"])
    assert (list(selection.names), selection.pairs) == (["en", "fr"], (("en", "fr"),))


@pytest.mark.parametrize(
    ("langs", "wanted", "open_ended"),
    [("all", None, True), ("all", "all", True), ("all", "en-de", False), ("en,de", "all", False)],
)
def test_only_what_is_not_named_may_be_missing(langs, wanted, open_ended):
    assert FetchConfig(langs=langs, pairs=wanted).select(AVAILABLE, corpus="x").open_ended is open_ended


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"langs": "en"}, "--langs must be 'en' and other languages, such as en,de,zh-CN, but is 'en'."),
        (
            {"langs": "en,,de"},
            "--langs must be 'en' and other languages, such as en,de,zh-CN, but is 'en,,de'.",
        ),
        (
            {"langs": "de,fr"},
            "--langs must be 'en' and other languages, such as en,de,zh-CN, but is 'de,fr'.",
        ),
        ({"langs": "en,cn"}, "'cn' is no language code: Chinese is zh."),
        ({"langs": "en,german"}, "'german' is no language code: German is de."),
        ({"langs": "en,zh-CN,zh_cn"}, "--langs names zh-cn twice; take one of them."),
        (
            {"langs": "de,fr", "pairs": "en-de"},
            "--pairs must be pairs such as en-de of de, fr, but has 'en-de'.",
        ),
        (
            {"langs": "en,de", "pairs": "ende"},
            "--pairs must be pairs such as en-de of en, de, but has 'ende'.",
        ),
        (
            {"langs": "en,de", "pairs": "de-de"},
            "--pairs must be pairs such as en-de of en, de, but has 'de-de'.",
        ),
        ({"langs": "en,de", "pairs": "en-de,de-en"}, "--pairs has de-en twice; one serves both directions."),
        (
            {"langs": "en,de", "testset": "a.b"},
            "--testset must be letters, digits, '_' and '-', but is 'a.b'.",
        ),
        (
            {"langs": "en,de", "testset": "../x"},
            "--testset must be letters, digits, '_' and '-', but is '../x'.",
        ),
    ],
)
def test_contradictions_are_told_before_anything_is_fetched(options, message):
    with pytest.raises(DataError) as raised:
        FetchConfig(**options)
    assert str(raised.value) == message


def test_pair_of_a_language_that_all_does_not_have():
    request = FetchConfig(langs="all", pairs="en-xx")
    with pytest.raises(
        DataError, match=r"--pairs must be pairs such as en-de of en, de, fr, .*, but has 'en-xx'"
    ):
        request.select(AVAILABLE, corpus="x")
