import io
import json
import tarfile

import pytest

from mnmt_data.corpus import Bitext, read_bitext
from mnmt_data.errors import DataError
from mnmt_data.fetch.libreoffice import (
    align,
    fetch_libreoffice_help,
    package_version,
    page_paragraphs,
    paragraphs,
)

PAGE = """<!DOCTYPE html>
<html lang="en-US"><head><title>Title</title></head><body>
<header><p id="outside">Help for LibreOffice</p></header>
<div id="DisplayArea">{}</div>
<footer><p id="bm_module">Module is: shared</p></footer>
</body></html>"""
SWITCH = """<p id="p">Choose <span id="s" class="switchinline">
<span hidden="true" id="MACx" class="MAC"><span class="emph">Preferences</span></span>
<span hidden="true" id="defaultx"><span class="emph">Options</span></span></span> now.</p>"""


def read(content):
    return list(page_paragraphs(PAGE.format(content).encode()))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('<p id="par_1" class="paragraph">Plain.</p>', [("par_1", "Plain.")]),
        ('<h1 id="hd_1"><a name="x"></a>\n  Two\n words</h1>', [("hd_1", "Two words")]),
        ('<p id="p">In <b>bold</b>, <a href="x">linked</a>.</p>', [("p", "In bold, linked.")]),
        ('<p id="p">Köln — 图 &amp; &eacute;&nbsp;x</p>', [("p", "Köln — 图 & é x")]),
        ('<p>No id.</p><p id="p"> </p><div id="d">No paragraph.</div>', []),
        ('<p id="p">a<!-- hidden -->b</p>', [("p", "ab")]),
        (SWITCH, [("p", "Choose Options now.")]),
        (SWITCH.replace("defaultx", "WINx"), [("p", "Choose Preferences now.")]),
        ('<ul><li><p id="p">a</p></li><li><p id="q">b</p></li></ul>', [("p", "a"), ("q", "b")]),
        ("", []),
    ],
)
def test_paragraphs_of_a_page(content, expected):
    assert read(content) == expected


def test_paragraphs_align_by_page_and_id():
    english = {
        ("a", "1"): "one",
        ("a", "2"): "two",
        ("b", "1"): "three",
        ("b", "2"): "Calc",
        ("c", "1"): "one",
    }
    german = {
        ("c", "1"): "eins",
        ("b", "2"): "Calc",
        ("b", "1"): "drei",
        ("a", "1"): "eins",
        ("d", "1"): "vier",
    }
    assert align(english, german) == Bitext(src=["one", "three"], tgt=["eins", "drei"])


def test_version_is_in_the_name_of_the_file(tmp_path):
    assert (
        package_version(tmp_path / "libreoffice-help-de_4%3a7.4.7-1+deb12u14_all.deb") == "4:7.4.7-1+deb12u14"
    )


def package(path, language, pages):
    """A stand-in for a .deb: the archive that dpkg-deb would give of it."""
    with tarfile.open(path, "w") as archive:
        for name, content in pages.items():
            info = tarfile.TarInfo(f"./usr/share/libreoffice/help/{language}/{name}")
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return path


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """A machine where apt-get fetches packages out of a folder and dpkg-deb gives a package as it is."""
    archive, programs = tmp_path / "archive", tmp_path / "bin"
    archive.mkdir()
    programs.mkdir()
    apt_get = f"""#!/bin/sh
while [ "$1" != update ] && [ "$1" != download ]; do shift; done
verb=$1; shift; [ $verb = update ] && exit 0
for name in "$@"; do
    cp {archive}/${{name}}_*.deb . 2>/dev/null || {{ echo "E: Unable to locate package $name"; exit 100; }}
done
"""
    for name, script in {"apt-get": apt_get, "dpkg-deb": '#!/bin/sh\nexec cat "$2"\n'}.items():
        (programs / name).write_text(script, encoding="utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    help_pages = {
        "en-us": {
            "text/a.html": PAGE.format('<p id="1">one</p><p id="2">two</p>'),
            "a.html": "x",
            "text/b.js": "x",
        },
        "de": {"text/a.html": PAGE.format('<p id="2">zwei</p><p id="1">eins</p>')},
        "zh-cn": {"text/a.html": PAGE.format('<p id="1">一</p>')},
    }
    for name, pages in help_pages.items():
        package(archive / f"libreoffice-help-{name}_4%3a7.4_all.deb", name, pages)
    return archive


def test_package_gives_its_pages(debian):
    found = paragraphs(debian / "libreoffice-help-en-us_4%3a7.4_all.deb")
    assert found == {("a.html", "1"): "one", ("a.html", "2"): "two"}


@pytest.mark.parametrize(
    ("content", "message"), [(b"junk", "cannot be unpacked"), (b"\0" * 10240, "holds no help pages")]
)
def test_broken_package_is_named(debian, content, message):
    path = debian / "broken.deb"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"broken.deb: {message}"):
        paragraphs(path)


def test_fetch_writes_a_corpus_folder(debian, tmp_path):
    said = []
    folder = tmp_path / "corpora/help"
    fetch_libreoffice_help(("de", "zh-CN"), folder, report=said.append)
    assert read_bitext(folder, "train", "en-de") == Bitext(src=["one", "two"], tgt=["eins", "zwei"])
    assert read_bitext(folder, "train", "en-zh") == Bitext(src=["one"], tgt=["一"])
    assert said[1:] == ["en-de: 2 pairs", "en-zh: 1 pairs"]
    described = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    assert described["counts"] == {"train.en-de": 2, "train.en-zh": 1}
    assert described["provenance"]["packages"]["libreoffice-help-zh-cn"] == "4:7.4"


def test_unknown_language_is_told_and_writes_nothing(debian, tmp_path):
    with pytest.raises(DataError, match="Unable to locate package libreoffice-help-xx"):
        fetch_libreoffice_help(("xx",), tmp_path / "corpora/help", report=print)
    assert not (tmp_path / "corpora/help").exists()
