import io

import pytest
from babel.messages import Catalog
from babel.messages.pofile import write_po
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers.catalogue import Message
from mnmt_data.readers.po_file import read_po

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n"Language: de\\n"\n\n'
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1)
STRING = st.lists(TEXT, min_size=1, max_size=3).map("\n".join)


def messages(text, charset="UTF-8"):
    content = (HEADER.format(charset) + text).encode(charset)
    return [(m.context, tuple(m.english), tuple(m.translations)) for m in read_po(content, "x.po").messages]


@given(st.dictionaries(STRING, STRING, max_size=4))
def test_strings_are_read_as_babel_wrote_them(entries):
    catalogue, file = Catalog(locale="de"), io.BytesIO()
    for english, text in entries.items():
        catalogue.add(english, text)
    write_po(file, catalogue)
    expected = [Message(context="", english=(key,), translations=(text,)) for key, text in entries.items()]
    assert read_po(file.getvalue(), "x.po").messages == expected


def test_contexts_and_plurals_are_apart():
    assert messages("""
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

msgid "one"
msgid_plural "%d many"
msgstr[0] "eins"
msgstr[1] "%d "
"viele"
""") == [
        ("menu", ("Open",), ("Öffnen",)),
        ("", ("one", "%d many"), ("eins", "%d viele", "", "", "", "")),
    ]


def test_fuzzy_and_obsolete_entries_are_left_out():
    assert messages("""
#, fuzzy, c-format
#| msgid "Closed"
msgid "Close"
msgstr "Offen"

#, c-format
msgid "Save"
msgstr "Sichern"

#, fuzzy
#~| msgid "Older"
#~ msgid "Old"
#~ msgstr "Alt"

msgid "Last"
msgstr "Letzte"
""") == [("", ("Save",), ("Sichern",)), ("", ("Last",), ("Letzte",))]


@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1", "KOI8-R", "EUC-JP"])
def test_header_names_the_character_set(charset):
    letter = {"ISO-8859-1": "ö", "EUC-JP": "語"}.get(charset, "ю")
    comment = f"# by {letter}\n"
    content = (comment + HEADER.format(charset) + f'msgid "a"\nmsgstr "{letter}"\n').encode(charset)
    assert read_po(content, "x.po").messages[0].translations == (letter,)


def test_byte_order_mark_and_carriage_returns_are_no_text():
    content = ("\ufeff" + HEADER.format("UTF-8") + 'msgid "a"\nmsgstr "b"\n').replace("\n", "\r\n").encode()
    assert read_po(content, "x.po").messages[0].translations == ("b",)


def test_nonsense_in_the_header_does_not_matter():
    head = HEADER.format("CHARSET").replace('"Language', '"PO-Revision-Date: yesterday\\n"\n"Language')
    catalogue = read_po((head + 'msgid "a"\nmsgstr "ö"\n').encode(), "x.po")
    assert (catalogue.messages[0].translations, catalogue.header.language) == (("ö",), "de")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', r"x.po:6: missing msgstr for msgid 'a'; mend it"),
        ('msgid "a"\nmsgstr "b"\nnonsense\n', r"x.po:8: Unknown or misformatted keyword; mend it"),
        ('msgid "a"\nmsgstr[x] "b"\n', r"x.po: cannot be read as a .po file \(.*\); mend it"),
    ],
)
def test_broken_file_is_one_line(text, message):
    with pytest.raises(DataError, match=message):
        messages(text)


def test_line_in_another_character_set_is_named():
    content = (HEADER.format("UTF-8") + 'msgid "a"\nmsgstr "ö"\n').encode("latin-1")
    with pytest.raises(DataError, match=r"^x.po:7: not utf-8 \(byte 0xf6\); its header must name the right"):
        read_po(content, "x.po")
