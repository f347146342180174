import json
import re
import sys

import pytest

from mnmt_data.cli import main
from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import members, package_version
from mnmt_data.fetch.config import FetchConfig
from mnmt_data.fetch.libreoffice_help import fetch_libreoffice_help, read_help
from mnmt_data.fetch.libreoffice_interface import fetch_libreoffice_interface, read_interface
from mnmt_data.store.corpus_folder import Bitext, read_bitext

HELP = "./usr/share/libreoffice/help"
RESOURCE = "./usr/lib/libreoffice/program/resource"


def page(**paragraphs):
    inside = "".join(f'<p id="{key}">{text}</p>' for key, text in paragraphs.items())
    return f'<html><body><div id="DisplayArea">{inside}</div></body></html>'.encode()


@pytest.fixture
def debian(debian_machine, make_mo):
    """The archive of a machine with packages of LibreOffice."""
    packages = {
        "libreoffice-help-en-us": {
            f"{HELP}/en-US/text/a.html": page(x="one", y="two", z="Calc"),
            f"{HELP}/en-US/a.html": b"x",
            f"{HELP}/en-US/text/b.js": b"x",
        },
        "libreoffice-help-de": {f"{HELP}/de/text/a.html": page(y="zwei", x="eins", z="Calc")},
        "libreoffice-help-zh-cn": {f"{HELP}/zh-CN/text/a.html": page(x="一", z="计算")},
        "libreoffice-help-zh-tw": {f"{HELP}/zh-TW/text/a.html": page(x="壹", y="兩")},
        "libreoffice-help-ca": {
            f"{HELP}/ca-valencia/text/a.html": page(x="valencià", y="dos"),
            f"{HELP}/ca/text/a.html": page(x="u"),
        },
        "libreoffice-help-sk": {f"{HELP}/sk": b""},
        "libreoffice-help-common": {f"{HELP}/x": b""},
        "libreoffice-l10n-de": {
            f"{RESOURCE}/de/LC_MESSAGES/sw.mo": make_mo({"d|x\x04_Open": "Ö_ffnen", "S\x04OK": "OK"})
        },
        "libreoffice-l10n-fr": {
            f"{RESOURCE}/fr/LC_MESSAGES/sw.mo": make_mo({"d|x\x04_Open": "_Ouvrir", "S\x04OK": "Oui"})
        },
    }
    return debian_machine(packages)


@pytest.fixture
def fetch(debian, tmp_path):
    """Fetches and returns what was said, and the folder."""

    def run(command, **options):
        said = []
        command(FetchConfig(**options), tmp_path / "corpora/c", report=said.append)
        return said, tmp_path / "corpora/c"

    return run


def test_version_is_in_the_name_of_the_file(tmp_path):
    assert (
        package_version(tmp_path / "libreoffice-help-de_4%3a7.4.7-1+deb12u14_all.deb") == "4:7.4.7-1+deb12u14"
    )


def test_package_gives_its_pages(debian):
    found = read_help(debian / "libreoffice-help-en-us_4%3a7.4_all.deb")
    assert found == {("a.html", "x"): "one", ("a.html", "y"): "two", ("a.html", "z"): "Calc"}


@pytest.mark.parametrize("content", [b"junk", b""])
def test_broken_package_is_named(debian, content):
    path = debian / "broken.deb"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"broken.deb: cannot be unpacked \(.*\); delete it and fetch again"):
        list(members(path, re.compile("")))


def test_broken_catalogue_names_its_package(debian, make_package):
    path = make_package(debian / "l_1_all.deb", {f"{RESOURCE}/de/LC_MESSAGES/sw.mo": b"no catalogue"})
    with pytest.raises(
        DataError, match=r"l_1_all.deb: has a broken catalogue \(.*\); delete it and fetch again"
    ):
        read_interface(path)


def test_help_with_english(fetch):
    said, folder = fetch(fetch_libreoffice_help, langs="en,de,zh-CN")
    assert read_bitext(folder, "train", "en-de") == Bitext(src=["one", "two"], tgt=["eins", "zwei"])
    assert read_bitext(folder, "train", "en-zh") == Bitext(src=["one", "Calc"], tgt=["一", "计算"])
    assert said == [
        "looking for libreoffice-help-* in apt's lists",
        "fetching 3 packages",
        "de: 2 paragraphs translated",
        "zh: 2 paragraphs translated",
        "en-de: 2 pairs",
        "en-zh: 2 pairs",
    ]
    described = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    assert described["counts"] == {"train.en-de": 2, "train.en-zh": 2}
    assert described["provenance"]["packages"]["libreoffice-help-zh-cn"] == "4:7.4"


def test_help_without_english_still_tells_untranslated_text_by_it(fetch):
    _, folder = fetch(fetch_libreoffice_help, langs="de,zh_CN,zh-tw", pairs="all", testset="zero")
    assert read_bitext(folder, "zero", "de-zh_CN") == Bitext(src=["eins"], tgt=["一"])
    assert read_bitext(folder, "zero", "zh_TW-de") == Bitext(src=["壹", "兩"], tgt=["eins", "zwei"])
    assert read_bitext(folder, "zero", "zh_CN-zh_TW") == Bitext(src=["一"], tgt=["壹"])


def test_help_in_all_languages_leaves_out_empty_packages(fetch):
    said, folder = fetch(fetch_libreoffice_help, langs="all")
    assert "sk: its package has no text, left out" in said
    tasks = {path.name.split(".")[1] for path in folder.glob("train.*")}
    assert tasks == {"en-ca", "en-de", "en-zh_CN", "en-zh_TW"}


def test_interface_in_any_pair(fetch):
    said, folder = fetch(fetch_libreoffice_interface, langs="en,de,fr", pairs="all")
    assert read_bitext(folder, "train", "en-de") == Bitext(src=["Open"], tgt=["Öffnen"])
    assert read_bitext(folder, "train", "en-fr") == Bitext(src=["OK", "Open"], tgt=["Oui", "Ouvrir"])
    assert read_bitext(folder, "train", "fr-de") == Bitext(src=["Ouvrir"], tgt=["Öffnen"])
    assert "de: 1 strings translated" in said


def test_command_line(debian, tmp_path, monkeypatch, capsys):
    out = str(tmp_path / "made/help")
    options = ["--langs", "en,de,zh-CN", "--pairs", "de-zh", "--testset", "test", "--out", out]
    monkeypatch.setattr(sys, "argv", ["mnmt-data", "fetch", "libreoffice-help", *options])
    with pytest.raises(SystemExit) as raised:
        main()
    assert raised.value.code == 0
    assert capsys.readouterr().out == f"fetched: {out}\n"
    assert read_bitext(tmp_path / "made/help", "test", "de-zh") == Bitext(src=["eins"], tgt=["一"])
