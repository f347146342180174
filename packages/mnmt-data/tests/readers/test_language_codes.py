import re

import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers.language_codes import (
    base_language,
    best_tags,
    canonical_task,
    check_code,
    gettext_language,
    is_reversed,
    opposite,
    origin_code,
    serves,
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
        ("zh-CN", "zh_Hans", True),
        ("zh_TW", "zh_Hans", False),
        ("zh_HK", "zh_Hant", True),
        ("sr", "sr_Latn", False),
        ("de", "deu_Latn", True),
        ("de", "en", False),
        ("x1", "x1", True),
        ("x1", "x2", False),
        ("", "en", False),
        ("", "und", False),
        ("not a tag", "en", False),
        ("nob_Latn", "no", True),
        ("no", "nb", False),
        ("cmn", "zh", True),
        ("yue_Hant", "zh", False),
        ("wuu", "zh", False),
        ("arz_Arab", "ar", False),
        ("ind", "ms", False),
        ("hr", "sh", False),
        ("nno", "nl", False),
        ("non", "no", False),
    ],
)
def test_tags_serve_codes(tag, code, does):
    assert serves(tag, code) is does


FLORES = (
    "eng_Latn arb_Arab arz_Arab nob_Latn pes_Arab prs_Arab zho_Hans yue_Hant azj_Latn azb_Arab lvs_Latn "
    "ltg_Latn est_Latn khk_Cyrl npi_Deva ory_Orya plt_Latn swh_Latn uzn_Latn ydd_Hebr zsm_Latn ind_Latn "
    "als_Latn gaz_Latn pbt_Arab quy_Latn fuv_Latn kmr_Latn ckb_Arab tgl_Latn twi_Latn srp_Cyrl ayr_Latn "
    "gug_Latn knc_Latn dik_Latn "
)
CODES = (
    "en ar - no fa - zh - az - lv - et mn ne or mg sw uz yi ms id sq om ps qu ff ku - fil ak sr ay gn kr din"
)


@pytest.mark.parametrize(
    ("tag", "code"), [pair for pair in zip(FLORES.split(), CODES.split(), strict=True) if pair[1] != "-"]
)
def test_individual_languages_serve_their_macrolanguages(tag, code):
    there = tuple(FLORES.split())
    other = "deu_Latn"
    assert best_tags((*there, other), f"{code}-de", "x") == (tag, other)
    assert best_tags((other,), f"{code}-de", "x") is None


@pytest.mark.parametrize(
    ("tags", "task", "best"),
    [
        (("en_US", "en", "de"), "en-de", ("en", "de")),
        (("en_US", "en_Latn", "de"), "en-de", ("en_Latn", "de")),
        (("nob", "nno", "no", "en"), "en-no", ("en", "no")),
        (("arb_Latn", "arb_Arab", "en"), "ar-en", ("arb_Arab", "en")),
        (("zh", "zho_Hans", "en"), "zh_Hans-en", ("zho_Hans", "en")),
        (("zh-TW", "zh-CN", "en"), "en-zh_Hant", ("en", "zh-TW")),
        (("de",), "en-de", None),
        ((), "en-de", None),
        (("nb",), "no-nb", None),
        (("en_GB",), "en-en_GB", None),
    ],
)
def test_the_code_itself_is_best_and_no_tag_is_both_sides(tags, task, best):
    assert best_tags(tags, task, "x") == best


@pytest.mark.parametrize(
    ("tags", "task", "named"),
    [
        (("en", "zho_Hans", "zho_Hant"), "en-zh", "en-zho_Hans"),
        (("nno", "nob", "en"), "no-en", "nno-en"),
        (("en-US", "en-GB", "de"), "en-de", "en_US-de"),
    ],
)
def test_one_line_asks_which_of_several_tags(tags, task, named):
    with pytest.raises(DataError) as raised:
        best_tags(tags, task, "x.tsv")
    assert re.fullmatch(
        r"x\.tsv: \w+ may be \S+ or \S+; write in the task which, such as (\S+)\.", str(raised.value)
    )
    assert str(raised.value).endswith(f"{named}.")
    assert best_tags(tags, named, "x.tsv") is not None


MISTAKES = (
    "cn zh jp ja kr ko cz cs ua uk dk da gr el vn vi by be ir fa il he ge ka al sq rs sr us en sp es jap ja "
    "english en german de chinese zh farsi fa CN zh cn_Hans zh"
)


@pytest.mark.parametrize(("code", "meant"), re.findall(r"(\S+) (\S+)", MISTAKES))
def test_countries_and_names_are_no_codes(code, meant):
    with pytest.raises(
        DataError, match=rf"^'{code}' is no language code: [\w ]+ is {meant}(; Kanuri is kau)?\.$"
    ):
        check_code(code)
    check_code(meant)


ACCEPTED = "de deu ger fre chi gre iw in my si se ch zh_CN EN x1 made_up kau xx aa bb cc dd mm uu qaa"


@pytest.mark.parametrize("code", ACCEPTED.split())
def test_codes_and_what_nobody_has_mistaken_are_let_alone(code):
    check_code(code)


BASES = (
    "zho zh zh_Hant zh zho_Hans zh chi zh cmn zh jpn ja kor ko yue_Hant yue en_GB en nob_Latn nb "
    "made_up made ZH zh x x sr@latin sr"
)


@pytest.mark.parametrize(("code", "base"), re.findall(r"(\S+) (\S+)", BASES))
def test_the_base_language(code, base):
    assert base_language(code) == base


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
        ("deu_Latn-eng_Latn.tsv", True),
        ("bad-de-en.tsv", True),
        ("X.DE-EN.tsv", True),
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
