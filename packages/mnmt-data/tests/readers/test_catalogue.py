import gettext
import io
import logging
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers import open_reader
from mnmt_data.readers.catalogue import mo_strings, po_strings

ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"
RUSSIAN = (
    "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;"
)
SLOVENIAN = "nplurals=4; plural=n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3;"
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n"Plural-Forms: x; plural=n!=1;\\n"\n\n'
)
TEXT = st.text(st.characters(codec="iso-8859-2", exclude_categories=["Cc"]), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("rule", "forms", "singular", "plural"),
    [
        (ARABIC, "012345", "1", "3"),
        (RUSSIAN, "123", "1", "3"),
        (SLOVENIAN, "1235", "1", "5"),
        ("nplurals=1; plural=0;", "x", "x", "x"),
        ("nplurals=2; plural=n > 1;", "ab", "a", "b"),
        ("nplurals=2; plural=(n != 1)", "ab", "a", "b"),
        ("nplurals=INTEGER; plural=EXPRESSION;", "ab", "a", "b"),
        ("nplurals=2; plural=n%0;", "ab", "a", "b"),
        ("nplurals=2; plural=0-1;", "ab", "a", "b"),
        ("", "ab", "a", "b"),
    ],
)
def test_singular_and_plural_have_their_forms(make_mo, rule, forms, singular, plural):
    content = make_mo({"c\x04one\0many": "\0".join(forms)}, plural=rule)
    assert mo_strings(content, "x.mo") == [("c", "one", singular), ("c", "many", plural)]
    assert mo_strings(content, "x.mo", plurals=False) == [("c", "one", singular)]


def test_untranslated_strings_and_names_of_translators_are_left_out(make_mo):
    content = make_mo({"a": "", "one\0many": "\0viele", "1\0002": "eins", "translator-credits": "A. Name"})
    assert mo_strings(content, "x.mo") == [("", "1", "eins"), ("", "many", "viele")]


@given(
    entries=st.dictionaries(TEXT, TEXT, max_size=6),
    order=st.sampled_from("<>"),
    charset=st.sampled_from(["UTF-8", "ISO-8859-2"]),
)
def test_any_catalogue_reads_as_the_standard_library_does(make_mo, entries, order, charset):
    content = make_mo(entries, order=order, charset=charset)
    expected = gettext.GNUTranslations(io.BytesIO(content))
    strings = mo_strings(content, "x.mo")
    assert {english: text for _, english, text in strings} == entries
    assert all(expected.gettext(english) == text for _, english, text in strings)


def po(tmp_path, text, charset="UTF-8"):
    path = tmp_path / "x.po"
    path.write_bytes((HEADER.format(charset) + text).encode(charset))
    return po_strings(path)


def test_po_files_have_contexts_and_plurals_and_leave_out_what_nobody_has_confirmed(tmp_path):
    assert po(
        tmp_path,
        """
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#, fuzzy, c-format
#| msgid "Closed"
msgid "Close"
msgstr "Offen"

msgid "one"
msgid_plural "%d many"
msgstr[0] "eins"
msgstr[1] "%d\\n"
"viele"

#, fuzzy
#~| msgid "Older"
#~ msgid "Old"
#~ msgstr "Alt"

msgid "Last"
msgstr "Letzte"
""",
    ) == [
        ("menu", "Open", "Öffnen"),
        ("", "one", "eins"),
        ("", "%d many", "%d\nviele"),
        ("", "Last", "Letzte"),
    ]


@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1", "KOI8-R", "EUC-JP"])
def test_the_header_names_the_character_set(tmp_path, charset):
    letter = {"ISO-8859-1": "ö", "EUC-JP": "語"}.get(charset, "ю")
    assert po(tmp_path, f'msgid "a"\nmsgstr "{letter}"\n', charset) == [("", "a", letter)]


def test_an_unknown_character_set_is_taken_for_utf_8(make_mo):
    content = make_mo({"Open": "Öffnen"}).replace(b"charset=UTF-8", b"charset=KHARK")
    assert mo_strings(content, "x.mo") == [("", "Open", "Öffnen")]


def test_a_byte_order_mark_and_carriage_returns_are_no_text(tmp_path):
    content = ("\ufeff" + HEADER.format("UTF-8") + 'msgid "a"\nmsgstr "b"\n').replace("\n", "\r\n")
    (tmp_path / "x.po").write_bytes(content.encode())
    assert po_strings(tmp_path / "x.po") == [("", "a", "b")]


@pytest.mark.parametrize(
    "break_it",
    [
        lambda content: b"",
        lambda content: b'msgid ""\n',
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:4] + struct.pack("<I", 7 << 16) + content[8:],
        lambda content: content[:8] + struct.pack("<I", 2**32 - 1) + content[12:],
        lambda content: content.replace("Ö".encode(), b"\xd6 "),
    ],
)
def test_a_broken_mo_file_is_one_line(make_mo, break_it):
    content = break_it(make_mo({"Open": "Öffnen"}))
    with pytest.raises(DataError, match=r"^x\.mo: cannot be read as a gettext catalogue \(.*\); mend it as"):
        mo_strings(content, "x.mo")


@pytest.mark.parametrize("text", ['msgid "a"\nmsgstr "b"\nnonsense\n', 'msgid "a"\nmsgstr[x] "b"\n'])
def test_a_broken_po_file_is_one_line(tmp_path, text):
    with pytest.raises(DataError, match=rf"^{tmp_path}/x\.po: cannot be read as a gettext catalogue \("):
        po(tmp_path, text)


def test_text_in_another_character_set_is_one_line(tmp_path):
    (tmp_path / "x.po").write_bytes((HEADER.format("UTF-8") + 'msgid "a"\nmsgstr "ö"\n').encode("latin-1"))
    with pytest.raises(DataError, match=r"x\.po: cannot be read as a gettext catalogue \('utf-8' codec"):
        po_strings(tmp_path / "x.po")


PO = (HEADER.format("UTF-8").replace("Plural", "Language: de_DE\\n\"\n\"Plural") + '''
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#, fuzzy
msgid "Close"
msgstr "Offen"

msgid "one"
msgid_plural "%d\\n"
"many"
msgstr[0] "eins"
msgstr[1] "%d viele"

msgid "untranslated"
msgstr ""

msgid "odd"
msgstr "a\u2028b\x02c\x85d"

#~ msgid "Old"
#~ msgstr "Alt"
''')  # fmt: skip
PO_PAIRS = [("Open", "Öffnen"), ("one", "eins"), ("%d many", "%d viele"), ("odd", "a\u2028b\x02c\x85d")]


def pairs_of(path, task):
    (block,) = open_reader(str(path), task).blocks()
    return list(zip(block.src, block.tgt, strict=True))


def test_a_catalogue_is_a_source_of_pairs_in_either_direction(tmp_path, caplog):
    (tmp_path / "x.po").write_text(PO, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert pairs_of(tmp_path / "x.po", "en-de") == PO_PAIRS
    what = "left out of 7 units: 2 are fuzzy or obsolete, 1 are not translated"
    assert [record.getMessage() for record in caplog.records] == [f"{tmp_path / 'x.po'}: {what}"]
    assert pairs_of(tmp_path / "x.po", "de-en") == [(tgt, src) for src, tgt in PO_PAIRS]
    for task in ("en-fr", "de-fr"):
        with pytest.raises(DataError, match=rf"x\.po: is from en to de_DE by its header, not of {task};"):
            pairs_of(tmp_path / "x.po", task)
    (tmp_path / "x.po").write_text(PO.replace("Language:", 'X-Source-Language: fr\\n"\n"Language:'))
    assert pairs_of(tmp_path / "x.po", "fr-de") == PO_PAIRS
    with pytest.raises(DataError, match=r"is from fr to de_DE by its header, not of en-de; mend"):
        pairs_of(tmp_path / "x.po", "en-de")


def test_the_name_tells_the_direction_where_no_header_does(tmp_path):
    for name in ("x.po", "x.en-de.po", "x.de-en.po"):
        (tmp_path / name).write_text(PO.replace("Language: de_DE", "X: y"), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"x\.po: is from en to no language by its header, not of en-de; mend"
    ):
        pairs_of(tmp_path / "x.po", "en-de")
    assert pairs_of(tmp_path / "x.en-de.po", "en-de") == PO_PAIRS
    assert pairs_of(tmp_path / "x.de-en.po", "de-en") == PO_PAIRS
    assert pairs_of(tmp_path / "x.de-en.po", "en-de") == [(tgt, src) for src, tgt in PO_PAIRS]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgstr ""\n', "no unit has a pair of en-de: 1 are not translated."),
        ('msgid "a"\nmsgstr "b"\nnonsense\n', "cannot be read as a gettext catalogue ("),
    ],
)
def test_a_catalogue_without_pairs_is_a_mistake(tmp_path, text, message):
    (tmp_path / "x.en-de.po").write_text(HEADER.format("UTF-8") + text)
    with pytest.raises(DataError) as error:
        pairs_of(tmp_path / "x.en-de.po", "en-de")
    assert str(error.value).startswith(f"{tmp_path / 'x.en-de.po'}: {message}")
