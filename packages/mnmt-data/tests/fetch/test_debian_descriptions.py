import json

import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.config import FetchConfig
from mnmt_data.fetch.debian_descriptions import (
    fetch_debian_descriptions,
    parse_descriptions,
    read_descriptions,
)
from mnmt_data.store.corpus_folder import Bitext, read_bitext

ENGLISH = """Package: apt
Description-md5: aaa
Description-en: commandline package manager
 This package provides commandline tools for searching and
 managing packages.
 .
 These include:
  * apt-get
  * apt-cache

Package: bash
Description-md5: bbb
Description-en: GNU shell
 One paragraph.
 .
 Another.

Package: short
Description-md5: ccc
Description-en: only a synopsis
"""
GERMAN = """Package: apt
Description-md5: aaa
Description-de: Paketverwaltung
 Dieses Paket enthält Werkzeuge.
 .
 Das sind:
  * apt-get

Package: bash
Description-md5: bbb
Description-de: GNU-Shell
 Nur ein Absatz.

Package: other
Description-md5: zzz
Description-de: nirgends sonst
"""
FRENCH = """Package: apt
Description-md5: aaa
Description-fr: gestionnaire de paquets
 Ce paquet fournit des outils.
 .
 These include:
  * apt-get
  * apt-cache

Package: bash
Description-md5: bbb
Description-fr: interpréteur GNU
 Un seul paragraphe.

Package: other
Description-md5: zzz
Description-fr: nulle part ailleurs
"""
CHINESE = """Package: apt
Description-md5: aaa
Description-zh_CN: 命令行包管理器
 该软件包提供了用于
 搜索的 apt-get
 工具，
 包括：
"""


def test_entries_are_parsed_into_paragraphs():
    assert list(parse_descriptions(ENGLISH)) == [
        (
            "aaa",
            [
                "commandline package manager",
                "This package provides commandline tools for searching and managing packages.",
                "These include: * apt-get * apt-cache",
            ],
        ),
        ("bbb", ["GNU shell", "One paragraph.", "Another."]),
        ("ccc", ["only a synopsis"]),
    ]


def test_wrapped_chinese_is_joined_without_a_space():
    assert list(parse_descriptions(CHINESE)) == [
        ("aaa", ["命令行包管理器", "该软件包提供了用于搜索的 apt-get 工具，包括："])
    ]


@pytest.mark.parametrize(
    "content",
    ["", "Package: x\nDescription-en: no checksum\n", "Package: x\nDescription-md5: aaa\n", "junk\n\n\njunk"],
)
def test_entries_without_checksum_or_text_are_passed_over(content):
    assert list(parse_descriptions(content)) == []


def test_lists_of_several_sources_are_put_together(tmp_path):
    for name, content in (("a", ENGLISH), ("b", GERMAN), ("c", FRENCH)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = read_descriptions([tmp_path / "b", tmp_path / "c", tmp_path / "a"])
    assert {key: text for key, text in found.items() if key[0] in ("ccc", "zzz")} == {
        ("zzz", 1, 0): "nirgends sonst",
        ("ccc", 1, 0): "only a synopsis",
    }
    # The first list that has a description gives all of its paragraphs.
    assert [key for key in found if key[0] == "bbb"] == [("bbb", 2, 0), ("bbb", 2, 1)]


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """A machine where apt-get gives the lists above; returns what was said, and the folder."""
    lists = tmp_path / "corpora/.downloads/descriptions/lists"
    source, programs = tmp_path / "source", tmp_path / "bin"
    source.mkdir()
    programs.mkdir()
    contents = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "zh%5fCN": CHINESE}
    for language, content in contents.items():
        name = f"deb.example.org_dists_main_i18n_Translation-{language}"
        (source / name).write_text(content, encoding="utf-8")
    release = "".join(f" 0 1 main/i18n/Translation-{name}\n" for name in ("en", "de", "fr", "zh_CN", "ml"))
    (source / "deb.example.org_dists_InRelease").write_text(release, encoding="utf-8")
    (programs / "apt-get").write_text(f"#!/bin/sh\ncp {source}/* {lists}\n", encoding="utf-8")
    (programs / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def run(**options):
        said = []
        request = FetchConfig(testset="debian", **options)
        fetch_debian_descriptions(request, tmp_path / "corpora/debian", report=said.append)
        return said, tmp_path / "corpora/debian"

    return run


def test_paragraphs_align_where_both_have_as_many(fetch):
    said, folder = fetch(langs="en,de,zh-CN")
    assert read_bitext(folder, "debian", "en-de") == Bitext(
        src=[
            "commandline package manager",
            "This package provides commandline tools for searching and managing packages.",
            "These include: * apt-get * apt-cache",
        ],
        tgt=["Paketverwaltung", "Dieses Paket enthält Werkzeuge.", "Das sind: * apt-get"],
    )
    assert said[1:] == [
        "de: 3 paragraphs translated",
        "zh: 0 paragraphs translated",
        "en-de: 3 pairs",
        "en-zh: no pairs, left out",
    ]
    described = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    assert described["counts"] == {"debian.en-de": 3}
    configuration = (folder.parent / ".downloads/descriptions/apt.conf").read_text(encoding="utf-8")
    assert 'Acquire::Languages { "en"; "de"; "zh_CN"; };' in configuration


def test_pair_without_english_leaves_out_what_is_left_in_english(fetch):
    # Both give bash two paragraphs, the English has three: they need not be of the same text.
    _, folder = fetch(langs="de,fr", pairs="fr-de")
    assert read_bitext(folder, "debian", "fr-de") == Bitext(
        src=["gestionnaire de paquets", "Ce paquet fournit des outils."],
        tgt=["Paketverwaltung", "Dieses Paket enthält Werkzeuge."],
    )
    configuration = (folder.parent / ".downloads/descriptions/apt.conf").read_text(encoding="utf-8")
    assert 'Acquire::Languages { "en"; "de"; "fr"; };' in configuration


def test_all_languages_are_those_with_a_list(fetch):
    said, _ = fetch(langs="all")
    assert [line.split(":")[0] for line in said[1:]] == ["de", "fr", "zh", "en-de", "en-fr", "en-zh"]


def test_announced_language_without_a_list_is_told(fetch):
    with pytest.raises(DataError, match="apt-get update: no package descriptions in 'ml'"):
        fetch(langs="en,ml")
