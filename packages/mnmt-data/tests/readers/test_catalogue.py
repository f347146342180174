import pytest

from mnmt_data.readers.catalogue import Catalogue, Header, Message, charset_of

ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"
RUSSIAN = (
    "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;"
)
SLOVENIAN = "nplurals=4; plural=n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3;"


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
def test_singular_and_plural_have_their_forms(rule, forms, singular, plural):
    catalogue = Catalogue(
        header=Header(text=f"X: y\nPlural-Forms: {rule}\n"),
        messages=[Message(context="c", english=["one", "many"], translations=list(forms))],
    )
    assert list(catalogue.strings()) == [("c", "one", singular), ("c", "many", plural)]
    assert list(catalogue.singulars()) == [("c", "one", singular)]


def test_what_is_not_translated_is_left_out():
    catalogue = Catalogue(
        messages=[
            Message(context="", english=["a"], translations=[""]),
            Message(context="", english=["one", "many"], translations=["", "viele"]),
            Message(context="", english=["1", "2"], translations=["eins"]),
        ]
    )
    assert list(catalogue.strings()) == [("", "many", "viele"), ("", "1", "eins")]


def test_fields_of_the_header():
    header = Header(text="Language: pt_BR\nLanguage-Team: a: b\n")
    assert (header.language, header.value("language-team"), header.value("X")) == ("pt_BR", "a: b", "")


@pytest.mark.parametrize(
    ("header", "charset"),
    [
        ("Content-Type: text/plain; charset=ISO-8859-1", "iso8859-1"),
        ("charset=CHARSET", "utf-8"),
        ("charset=hex", "utf-8"),
        ("charset=undefined", "utf-8"),
        ("", "utf-8"),
    ],
)
def test_what_is_no_charset_of_text_is_utf8(header, charset):
    assert charset_of(header) == charset
