"""Folders of gettext catalogues as sources of a study."""

import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.config import CataloguesConfig
from mnmt_data.fetch.gettext_catalogues import fetch_gettext
from mnmt_data.readers import open_reader
from mnmt_data.store.corpus_folder import read_bitext

STRINGS = {
    "app": {
        "menu\x04_Open the file": ("_Datei öffnen", "_Ouvrir le fichier"),
        "door\x04_Open the file": ("_Tür öffnen", None),
        "_Close <b>%s</b> now": ("_Schließe <b>%s</b>", "_Fermer <b>%s</b>"),
        "One file of %d\0All files of %d": ("Eine von %d\0Alle %d", "Un fichier de %d\0Tous les %d"),
        "Quit": ("Ende", "Quitter"),
        "Left as it is": ("Left as it is", "Tel quel, voilà"),
        "translator-credits": ("Sie und er", "Elle et lui"),
    },
    "tool": {"Copy it all": ("Kopiere es alles", None), "Move it all": (None, "Déplacer tout")},
}


@pytest.fixture
def folder(tmp_path, make_mo):
    """Two programs in German, French and quoted English, and one in Japanese alone."""
    for domain, strings in STRINGS.items():
        for place, language in enumerate(("de", "fr")):
            entries = {english: texts[place] for english, texts in strings.items() if texts[place]}
            write(tmp_path / f"po/{language}/LC_MESSAGES/{domain}.mo", make_mo(entries))
    write(tmp_path / "po/en@quot/LC_MESSAGES/app.mo", make_mo({"Copy it all": "‘Copy’ it all"}))
    write(tmp_path / "po/ja/LC_MESSAGES/game.mo", make_mo({"Play it again": "もう一度遊ぶ"}))
    return tmp_path / "po"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def pairs(folder, task, **options):
    blocks = list(open_reader(str(folder), task).blocks(**options))
    return [pair for block in blocks for pair in zip(block.src, block.tgt, strict=True)]


@pytest.mark.parametrize("task", ["en-de", "en-fr", "de-fr", "fr-en"])
def test_a_source_has_the_pairs_that_fetch_writes(folder, task, tmp_path):
    config = CataloguesConfig(langs="en,de,fr", pairs=task, catalogues=folder)
    fetch_gettext(config, tmp_path / "corpus", report=print)
    bitext = read_bitext(tmp_path / "corpus", "train", task)
    assert len(bitext) > 2
    assert sorted(pairs(folder, task)) == sorted(zip(bitext.src, bitext.tgt, strict=True))


def test_its_files_are_those_of_the_two_languages(folder):
    reader = open_reader(str(folder), "en-deu")
    assert [path.relative_to(folder).as_posix() for path in reader.paths] == [
        "de/LC_MESSAGES/app.mo",
        "de/LC_MESSAGES/tool.mo",
    ]
    assert len(open_reader(str(folder), "fr-de").paths) == 4
    assert open_reader(str(folder), "de-ja").paths == ()


def test_a_language_without_catalogues_is_named(folder):
    with pytest.raises(DataError, match=r"po: has no catalogues of nl; it has those of de, fr, ja\."):
        open_reader(str(folder), "en-nl")


def test_a_broken_catalogue_is_refused_or_listed(folder):
    (folder / "de/LC_MESSAGES/app.mo").write_bytes(b"junk")
    with pytest.raises(DataError, match=r"app\.mo: does not begin as a \.mo file does"):
        pairs(folder, "en-de")
    (block,) = open_reader(str(folder), "en-de").blocks(skip_bad=True)
    assert (block.tgt, [line.row for line in block.bad]) == (["", "Kopiere es alles"], [0])
