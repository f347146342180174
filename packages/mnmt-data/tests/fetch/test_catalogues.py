import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.catalogues import find_catalogues

GERMAN = b'msgid ""\nmsgstr ""\n"Language: de_DE\\n"\n'


@pytest.mark.parametrize(
    ("path", "content", "domain", "language"),
    [
        ("usr/share/locale/pt_BR/LC_MESSAGES/gimp20.mo", b"", "usr/share/locale/gimp20", "pt_BR"),
        ("ja_JP.UTF-8/LC_MESSAGES/vim.mo", b"", "vim", "ja"),
        ("po/de.po", b"", "po", "de"),
        ("de.po", b"", "", "de"),
        ("po/sr@latin.po", b"", "po", "sr@latin"),
        ("po-gui/zh_Hant.po", b"", "po-gui", "zh_TW"),
        ("po/gimp-de.po", GERMAN, "po/gimp", "de"),
        ("languages/admin-network-de_DE.mo", b"", "languages/admin-network", "de"),
        ("po/foo-bar.po", GERMAN, "po/foo-bar", "de"),
        ("l10n/de/messages/kate.po", GERMAN, "l10n/messages/kate", "de"),
        ("de/gui.po", GERMAN, "gui", "de"),
        ("gui/de.po", GERMAN, "gui", "de"),
        ("l10n/kate.po", b'"Language: German\\n"', None, None),
        ("l10n/kate.po", b'"Language: \\n"', None, None),
    ],
)
def test_paths_and_headers_name_domain_and_language(tmp_path, path, content, domain, language):
    said, file = [], tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    found = [
        (catalogue.domain, catalogue.language) for catalogue in find_catalogues(tmp_path, report=said.append)
    ]
    assert found == ([] if domain is None else [(domain, language)])
    left_out = f"{file}: neither its name nor its header names its language, left out"
    assert said == ([left_out] if domain is None else [])


def test_languages_of_a_program_share_its_domain_and_a_po_file_goes_first(tmp_path):
    for name in ("de.mo", "de.po", "fr.mo", "de_AT.po", "de_DE.po"):
        (tmp_path / name).touch()
    found = find_catalogues(tmp_path, report=print)
    assert {catalogue.domain for catalogue in found} == {""}
    assert {catalogue.language: catalogue.path.name for catalogue in found} == {
        "de": "de.po",
        "de_AT": "de_AT.po",
        "fr": "fr.mo",
    }


def test_catalogues_in_english_are_passed_over(tmp_path):
    for name in ("en.po", "en_US.po", "en@quot.po", "en@boldquot.mo", "en_GB.po"):
        (tmp_path / name).touch()
    assert [catalogue.language for catalogue in find_catalogues(tmp_path, report=print)] == ["en_GB"]


def test_missing_folder_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"x: no such folder; name one with .po or .mo files\."):
        find_catalogues(tmp_path / "x", report=print)
