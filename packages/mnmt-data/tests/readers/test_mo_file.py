import gettext
import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.readers.catalogue import Message
from mnmt_data.readers.mo_file import read_mo

TEXT = st.text(st.characters(codec="iso-8859-2", exclude_categories=["Cc"]), min_size=1, max_size=12)
ENTRIES = st.dictionaries(TEXT, TEXT, max_size=6)


@given(
    entries=ENTRIES, order=st.sampled_from("<>"), charset=st.sampled_from(["UTF-8", "ISO-8859-2", "UTF-16LE"])
)
def test_any_catalogue_reads_as_the_standard_library_does(make_mo, entries, order, charset):
    if charset == "UTF-16LE":
        charset = "UTF-8"
        entries = {f"{key}𝄞": f"{text}文" for key, text in entries.items()}
    content = make_mo(entries, order=order, charset=charset)
    expected = gettext.GNUTranslations(io.BytesIO(content))
    messages = read_mo(content, "x.mo").messages
    assert {message.english[0]: message.translations[0] for message in messages} == entries
    assert all(expected.gettext(message.english[0]) == message.translations[0] for message in messages)


@pytest.mark.parametrize("order", ["<", ">"])
def test_contexts_and_plurals_are_apart(make_mo, order):
    content = make_mo({"menu\x04Open": "Öffnen", "a\x04one\0%d many": "eins\0%d viele"}, order=order)
    assert read_mo(content, "x.mo").messages == [
        Message(context="a", english=["one", "%d many"], translations=["eins", "%d viele"]),
        Message(context="menu", english=["Open"], translations=["Öffnen"]),
    ]


def test_header_is_no_message(make_mo):
    catalogue = read_mo(make_mo({}, header="Language: de\n"), "x.mo")
    assert (catalogue.messages, catalogue.header.language) == ([], "de")


def test_unknown_character_set_is_taken_for_utf_8(make_mo):
    content = make_mo({"Open": "Öffnen"}).replace(b"charset=UTF-8", b"charset=KHARK")
    assert read_mo(content, "x.mo").messages[0].translations == ["Öffnen"]


def test_every_truncation_is_noticed(make_mo):
    content = make_mo({"Open": "Öffnen", "one\0many": "eins\0viele"})
    for end in range(4, len(content) - 1):
        with pytest.raises(DataError, match=r"^x.mo: ends before its last string; it is truncated"):
            read_mo(content[:end], "x.mo")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin as a .mo file does; give one that msgfmt has made."),
        (b'msgid ""\n', "does not begin as a .mo file does; give one that msgfmt has made."),
        (
            struct.pack("<7I", 0x950412DE, 7 << 16, 0, 28, 28, 0, 0),
            "has revision 7, but must have 0 or 1; make it again with msgfmt.",
        ),
        (
            struct.pack("<7I", 0x950412DE, 0, 2**32 - 1, 28, 28, 0, 0),
            "ends before its last string; it is truncated, make it again with msgfmt.",
        ),
    ],
)
def test_broken_file_is_one_line(content, message):
    with pytest.raises(DataError) as raised:
        read_mo(content, "x.mo")
    assert str(raised.value) == f"x.mo: {message}"


def test_string_in_another_character_set_is_one_line(make_mo):
    content = make_mo({"Open": "Öffnen"}, charset="ISO-8859-1").replace(b"ISO-8859-1", b"UTF-8     ")
    with pytest.raises(DataError, match=r"^x.mo: has a string that is not utf-8 \(.*\); its header must"):
        read_mo(content, "x.mo")
