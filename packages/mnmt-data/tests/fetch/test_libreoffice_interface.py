import pytest

from mnmt_data.fetch.libreoffice_interface import catalogue_strings, english_strings

THREE_FORMS = "nplurals=3; plural=n==0 ? 0 : n==1 ? 1 : 2;"


@pytest.fixture
def read(make_mo):
    """Reads a catalogue of these entries."""
    return lambda entries, **options: dict(catalogue_strings("sw", make_mo(entries, **options)))


def test_strings_are_known_by_catalogue_context_and_english(read):
    assert read({"STR_A\x04Open": "Öffnen", "STR_B\x04Open": "Offen", "Close": "Schließen"}) == {
        ("sw", "STR_A", "Open"): "Öffnen",
        ("sw", "STR_B", "Open"): "Offen",
        ("sw", "", "Close"): "Schließen",
    }


def test_header_and_untranslated_strings_are_passed_over(read):
    assert read({"STR_A\x04Open": ""}) == {}


@pytest.mark.parametrize(
    ("plural", "forms", "singular"),
    [
        ("nplurals=2; plural=n != 1;", "eine Seite\0%1 Seiten", "eine Seite"),
        ("nplurals=1; plural=0;", "%1 ページ", "%1 ページ"),
        (THREE_FORMS, "keine Seite\0eine Seite\0%1 Seiten", "eine Seite"),
    ],
)
def test_of_plurals_the_form_for_one_is_taken(read, plural, forms, singular):
    found = read({"STR_A\x04One page\0%1 pages": forms}, plural=plural)
    assert found == {("sw", "STR_A", "One page"): singular}


def test_english_is_what_any_catalogue_looks_up(read):
    german = read({"d|x\x04_Open": "Ö_ffnen"})
    french = read({"d|x\x04_Open": "_Ouvrir", "STR_A\x04~Close": "~Fermer"})
    assert english_strings([german, french]) == {
        ("sw", "d|x", "_Open"): "Open",
        ("sw", "STR_A", "~Close"): "Close",
    }
