import json

import pytest

from mnmt_data.corpus import Bitext, read_bitext
from mnmt_data.fetch.debian import align, fetch_debian_descriptions, parse_descriptions, read_descriptions

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
    for name, content in (("a", ENGLISH), ("b", GERMAN)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert sorted(read_descriptions([tmp_path / "a", tmp_path / "b"])) == ["aaa", "bbb", "ccc", "zzz"]


def test_paragraphs_align_where_both_have_as_many():
    english, german = dict(parse_descriptions(ENGLISH)), dict(parse_descriptions(GERMAN))
    assert align(english, german) == Bitext(
        src=[
            "commandline package manager",
            "This package provides commandline tools for searching and managing packages.",
            "These include: * apt-get * apt-cache",
        ],
        tgt=["Paketverwaltung", "Dieses Paket enthält Werkzeuge.", "Das sind: * apt-get"],
    )


def test_untranslated_paragraphs_are_dropped():
    assert align({"a": ["same", "one"]}, {"a": ["same", "eins"]}) == Bitext(src=["one"], tgt=["eins"])


def test_fetch_writes_a_corpus_folder(tmp_path, monkeypatch):
    lists = tmp_path / "corpora/.downloads/descriptions/lists"
    contents = {"en": ENGLISH, "de": GERMAN, "zh%5fCN": CHINESE}
    source, programs = tmp_path / "source", tmp_path / "bin"
    source.mkdir()
    programs.mkdir()
    for language, content in contents.items():
        (source / f"deb.example.org_dists_main_i18n_Translation-{language}").write_text(
            content, encoding="utf-8"
        )
    (programs / "apt-get").write_text(f"#!/bin/sh\ncp {source}/* {lists}\n", encoding="utf-8")
    (programs / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    said = []
    fetch_debian_descriptions(("de", "zh-CN"), tmp_path / "corpora/debian", report=said.append)
    assert said[1:] == ["en-de: 3 pairs", "en-zh: 0 pairs"]
    assert len(read_bitext(tmp_path / "corpora/debian", "debian", "en-de")) == 3
    described = json.loads((tmp_path / "corpora/debian/corpus.json").read_text(encoding="utf-8"))
    assert described["counts"] == {"debian.en-de": 3, "debian.en-zh": 0}
    configuration = (lists.parent / "apt.conf").read_text(encoding="utf-8")
    assert 'Acquire::Languages { "en"; "de"; "zh_CN"; };' in configuration
