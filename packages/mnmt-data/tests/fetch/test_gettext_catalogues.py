import json

import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.config import CataloguesConfig
from mnmt_data.fetch.gettext_catalogues import fetch_gettext
from mnmt_data.store.corpus_folder import Bitext, read_bitext

LOCALE = "./usr/share/locale"
MANY = "One file was opened\0%d files were opened"


@pytest.fixture
def debian(debian_machine, make_mo):
    """A machine with two packages of programs."""
    app = {
        "de": {"menu\x04_Open the file": "_Datei öffnen", MANY: "Eine Datei geöffnet\0%d Dateien geöffnet"},
        "fr": {
            "menu\x04_Open the file": "_Ouvrir le fichier",
            MANY: "Un fichier ouvert\0%d fichiers ouverts",
        },
        "ja": {MANY: "%d 個のファイルを開きました"},
    }
    tool = {
        "NAME OF TRANSLATORS\x04Their real names": "x",
        "Open the file": "Öffne die Datei",
        "Close it now": "Close it now",
    }
    plural = {"ja": "nplurals=1; plural=0;"}
    files = {
        f"{LOCALE}/{language}/LC_MESSAGES/app.mo": make_mo(
            entries, plural=plural.get(language, "plural=n!=1;")
        )
        for language, entries in app.items()
    }
    files[f"{LOCALE}/de/LC_MESSAGES/broken.mo"] = b"junk"
    copyright_file = b"Format: x\nLicense: GPL-2+\n\nLicense: MIT\n"
    return debian_machine(
        {
            "app": {**files, "./usr/share/doc/app/copyright": copyright_file},
            "tool": {
                f"{LOCALE}/de_DE/LC_MESSAGES/tool.mo": make_mo(tool),
                f"{LOCALE}/fr/LC_MESSAGES/tool.mo": make_mo({"Open the file": "Ouvrez le fichier"}),
            },
        }
    )


@pytest.fixture
def fetch(tmp_path):
    """Fetches and returns what was said, and the folder."""

    def run(**options):
        said = []
        config = CataloguesConfig(**{"langs": "en,de,fr", **options})
        fetch_gettext(config, tmp_path / "corpora/c", report=said.append)
        return said, tmp_path / "corpora/c"

    return run


def test_packages_align_by_the_english_string(debian, fetch):
    said, folder = fetch(packages="app,tool")
    assert read_bitext(folder, "train", "en-de") == Bitext(
        src=["One file was opened", "{1} files were opened", "Open the file", "Open the file"],
        tgt=["Eine Datei geöffnet", "{1} Dateien geöffnet", "Datei öffnen", "Öffne die Datei"],
    )
    assert "app 4:7.4: GPL-2+, MIT" in said
    (broken,) = [line for line in said if line.startswith("left out: ")]
    assert "broken.mo: cannot be read as a gettext catalogue (Invalid mo file" in broken


def test_pairs_without_english_go_through_it(debian, fetch):
    _, folder = fetch(packages="app,tool", langs="de,fr,ja", pairs="all")
    assert read_bitext(folder, "train", "de-fr").tgt[-1] == "Ouvrez le fichier"
    assert read_bitext(folder, "train", "fr-ja") == Bitext(
        src=["Un fichier ouvert", "{1} fichiers ouverts"], tgt=["{1} 個のファイルを開きました"] * 2
    )


def test_licences_and_versions_lie_beside_the_text(debian, fetch):
    _, folder = fetch(packages="app,tool")
    assert (folder / "licences.tsv").read_text(encoding="utf-8").splitlines() == [
        "package\tversion\tstrings\tlicences",
        "app\t4:7.4\t3\tGPL-2+; MIT",
        "tool\t4:7.4\t2\tread its copyright file",
    ]
    assert (folder / "copyright.app.txt").read_text(encoding="utf-8").startswith("Format: x")
    described = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    assert described["provenance"]["packages"] == {"app": "4:7.4", "tool": "4:7.4"}
    assert described["provenance"]["min_words"] == 3
    assert {"licences.tsv", "copyright.app.txt", "train.en-de.de"} <= described["sha256"].keys()


@pytest.fixture
def catalogues(tmp_path):
    """A folder of .po files."""
    folder = tmp_path / "po"
    folder.mkdir()
    for language, text in {"de": "Öffnet <b>%s</b>", "fr": "Ouvre <b>%s</b>"}.items():
        head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
        credit = 'msgctxt "NAME OF TRANSLATORS"\nmsgid "Your own names"\nmsgstr "A"\n'
        entry = f'msgid "Opens <b>%s</b>"\nmsgstr "{text}"\n'
        (folder / f"{language}.po").write_text(f"{head}\n{credit}\n{entry}", encoding="utf-8")
    return folder


def test_any_folder_of_catalogues(catalogues, fetch):
    _, folder = fetch(catalogues=catalogues, min_words=2)
    assert read_bitext(folder, "train", "en-de") == Bitext(src=["Opens {1}"], tgt=["Öffnet {1}"])
    assert not (folder / "licences.tsv").exists()
    described = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    assert described["provenance"]["folder"] == str(catalogues)


def test_text_of_too_few_words_is_left_out(catalogues, fetch):
    with pytest.raises(DataError, match="no two of the languages have text in common"):
        fetch(catalogues=catalogues)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"packages": "a", "catalogues": "b"},
            "--packages and --catalogues are two sources; give one of them.",
        ),
        ({"min_words": 0}, "--min-words must be at least 1, but is 0."),
    ],
)
def test_options_that_contradict_are_one_line(options, message):
    with pytest.raises(DataError) as raised:
        CataloguesConfig(**options)
    assert str(raised.value) == message


def test_command_line(cli, catalogues):
    status, out, err = cli("fetch", "gettext", "--catalogues", "po", "--langs", "en,de", "--min-words", "1")
    assert (status, out) == (0, "fetched: corpora/gettext\n")
    assert err.splitlines() == ["de: 1 strings translated", "en-de: 1 pairs"]


@pytest.mark.parametrize("langs", ["en,xx", "en,qx", "en,deutsch"])
def test_what_is_no_language_is_told_before_anything_is_fetched(fetch, langs):
    with pytest.raises(DataError, match=r"--langs: '\w+' is no language; write codes such as de or pt_BR"):
        fetch(packages="app", langs=langs)


def test_a_code_may_be_longer_or_shorter_than_that_of_the_catalogues(catalogues, fetch):
    (catalogues / "fr.po").rename(catalogues / "zh_CN.po")
    _, folder = fetch(catalogues=catalogues, langs="en,zh,de_DE", pairs="all", min_words=2)
    assert {path.name for path in folder.glob("*.en-*")} == {
        f"train.en-{code}.{side}" for code in ("zh", "de") for side in ("en", code)
    }
    with pytest.raises(DataError, match="--langs names zh-cn twice; take one of them"):
        fetch(catalogues=catalogues, langs="en,zh,zh_CN")
