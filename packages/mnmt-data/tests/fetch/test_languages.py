import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.fetch.languages import find_languages, full_code, plain, task_codes

LANGUAGES = [
    "en",
    "en-GB",
    "de",
    "de_DE",
    "pt",
    "pt-BR",
    "zh-CN",
    "zh_TW",
    "sr",
    "sr@latin",
    "nn",
    "nb",
    "pa-in",
]


@pytest.mark.parametrize(
    ("language", "expected_plain", "expected_code"),
    [
        ("de", "de", "de"),
        ("zh-CN", "zh-cn", "zh_CN"),
        ("zh_TW", "zh-tw", "zh_TW"),
        ("pt-br", "pt-br", "pt_BR"),
        ("sr@latin", "sr-latin", "sr_latin"),
        ("ca-valencia", "ca-valencia", "ca_valencia"),
        (" EN-us", "en", "en"),
    ],
)
def test_spellings_of_a_language(language, expected_plain, expected_code):
    assert plain(language) == expected_plain
    assert full_code(language) == expected_code


@pytest.mark.parametrize(
    ("languages", "codes"),
    [
        (["en", "de", "zh-CN"], ["en", "de", "zh"]),
        (["zh-CN", "de", "zh-TW"], ["zh_CN", "de", "zh_TW"]),
        (["pt", "pt_BR"], ["pt", "pt_BR"]),
        (["pt-br"], ["pt"]),
        (["en-gb", "de"], ["en_GB", "de"]),
        (["en", "en-gb", "en-za"], ["en", "en_GB", "en_ZA"]),
    ],
)
def test_region_stays_in_the_code_where_it_tells_languages_apart(languages, codes):
    assert task_codes(languages) == dict(zip(languages, codes, strict=True))


@given(st.lists(st.sampled_from(LANGUAGES), unique=True))
def test_codes_differ_and_can_name_a_task(languages):
    codes = list(task_codes(languages).values())
    assert len(set(codes)) == len(languages)
    assert all(re.fullmatch("[A-Za-z_]+", code) for code in codes)


def test_languages_are_found_however_they_are_written():
    names = find_languages(["zh_CN", "EN", "pt-BR"], ["en", "pt_BR", "zh-cn"], corpus="x")
    assert names == ("zh-cn", "en", "pt_BR")


def test_unknown_language_is_told_with_those_there_are():
    with pytest.raises(DataError) as raised:
        find_languages(["en", "xx"], ["zh-cn", "en", "de"], corpus="LibreOffice help")
    assert str(raised.value) == "--langs: no 'xx' in LibreOffice help; there are de, en, zh_CN."
