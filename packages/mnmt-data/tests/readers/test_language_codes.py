import pytest

from mnmt_data.readers.language_codes import (
    best_tag,
    canonical_task,
    gettext_language,
    is_reversed,
    opposite,
    origin_code,
    serves,
    spellings,
    task_spellings,
)


@pytest.mark.parametrize(
    ("tag", "code", "does"),
    [
        ("en", "en", True),
        ("EN-us", "en", True),
        ("eng", "en", True),
        ("eng_US", "en", True),
        ("zho_Hant_TW", "zh", True),
        ("deu_Latn", "de", True),
        ("de", "deu", True),
        ("en", "en_GB", False),
        ("en-US", "en_GB", False),
        ("zh_Hant", "zh_Hans", False),
        ("de", "en", False),
        ("x1", "x1", True),
        ("x1", "x2", False),
        ("", "en", False),
        ("", "und", False),
        ("not a tag", "en", False),
    ],
)
def test_tags_serve_codes(tag, code, does):
    assert serves(tag, code) is does


@pytest.mark.parametrize(
    ("tags", "code", "best"),
    [
        (("en_US", "en"), "en", "en"),
        (("en_US", "en_GB"), "en", "en_US"),
        (("de",), "en", None),
        ((), "en", None),
    ],
)
def test_the_code_itself_is_best(tags, code, best):
    assert best_tag(tags, code) == best


@pytest.mark.parametrize(
    ("code", "all_spellings"),
    [
        ("de", ("de", "deu")),
        ("deu", ("deu", "de")),
        ("sah", ("sah",)),
        ("x1", ("x1",)),
        ("zh_Hans", ("zh_Hans", "zh-Hans", "zh", "zho")),
        ("es_419", ("es_419", "es-419", "es", "spa")),
    ],
)
def test_spellings(code, all_spellings):
    assert spellings(code) == all_spellings


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("x.en-de.tsv", False),
        ("x.de-en.tsv", True),
        ("x.deu-eng.tsv", True),
        ("x_de-en.tsv", True),
        ("x.tsv", False),
        ("x.de-en.en-de.tsv", False),
        ("code-encoder.tsv", False),
    ],
)
def test_direction_of_a_name(name, is_so):
    assert is_reversed(name, "en-de") is is_so


@pytest.mark.parametrize(
    ("origin", "code"), [("en", "en"), ("deu", "de"), ("en-GB", "en"), ("fr", "fr"), ("", ""), (None, "")]
)
def test_origins(origin, code):
    assert origin_code(origin, "en-de") == code


def test_opposite():
    assert opposite("en-de") == "de-en"


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("de", "de"),
        ("de_DE", "de"),
        ("de_DE.UTF-8", "de"),
        ("de_AT", "de_AT"),
        ("pt", "pt"),
        ("pt_PT", "pt"),
        ("pt_BR", "pt_BR"),
        ("zh_CN", "zh_CN"),
        ("zh_Hans", "zh_CN"),
        ("zh-Hant", "zh_TW"),
        ("zh_HK", "zh_HK"),
        ("zh", "zh_CN"),
        ("en_US", "en"),
        ("en@quot", "en@quot"),
        ("sr@latin", "sr@latin"),
        ("uz_Cyrl", "uz_Cyrl"),
        ("es_419", "es_419"),
        ("not a tag", "not a tag"),
    ],
)
def test_gettext_locales(locale, language):
    assert gettext_language(locale) == language


@pytest.mark.parametrize(
    ("task", "canonical"),
    [
        ("en-de", "en-de"),
        ("en-zh-Hans", "en-zh_Hans"),
        ("zh-Hans-en", "zh_Hans-en"),
        ("es-419-pt-BR", "es_419-pt_BR"),
        ("en-zh_Hant", "en-zh_Hant"),
        ("en-de-fr", "en-de-fr"),
        ("xx-aa", "xx-aa"),
        ("made_up-en", "made_up-en"),
    ],
)
def test_a_code_may_have_hyphens(task, canonical):
    assert canonical_task(task) == canonical
    assert canonical_task(canonical) == canonical


@pytest.mark.parametrize(
    ("task", "written"),
    [("en-de", ("en-de",)), ("en-zh_Hans", ("en-zh_Hans", "en-zh-Hans")), ("made_up-en", ("made_up-en",))],
)
def test_spellings_of_tasks(task, written):
    assert task_spellings(task) == written
