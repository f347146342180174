import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch import catalogue_packages
from mnmt_data.fetch.apt import Apt
from mnmt_data.fetch.catalogue_packages import (
    PACKAGE_LIST,
    choose_packages,
    copyright_file,
    fetch_packages,
    licences,
)

DOC = "./usr/share/doc"


@pytest.fixture
def archive(debian_machine):
    return debian_machine(
        {
            "git": {
                "./usr/share/locale/de/LC_MESSAGES/git.mo": b"mo",
                "./usr/share/git/po/fr.po": b"po",
                "./usr/share/locale/de/LC_MESSAGES/link.mo": "git.mo",
                "./usr/bin/git": b"program",
                f"{DOC}/git/copyright": b"Format: x\n\nLicense: GPL-2\n",
            },
            "nano": {f"{DOC}/nano/copyright": b"Do as you like."},
            "evil": {"./../../escape.mo": b"mo"},
        }
    )


@pytest.fixture
def apt(archive, tmp_path):
    return Apt(tmp_path / "downloads", report=print)


def shipped(monkeypatch, tmp_path, lines):
    """Puts another list in the place of the one that ships."""
    (tmp_path / PACKAGE_LIST).write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(catalogue_packages, "files", lambda package: tmp_path)


def test_of_alternatives_the_first_that_is_there_is_taken(apt, tmp_path, monkeypatch):
    shipped(monkeypatch, tmp_path, ["# comment", "", "nano", "git-2 git git-1", "gimp-data gimp"])
    said = []
    assert choose_packages(None, apt, report=said.append) == ["nano", "git"]
    assert said == ["not in this release, left out: gimp-data"]


def test_named_packages_must_be_there(apt):
    assert choose_packages("nano, git,nano", apt, report=print) == ["nano", "git"]
    with pytest.raises(DataError, match=r"--packages: no 'gitt' in apt's lists; `apt-cache search`"):
        choose_packages("git,gitt", apt, report=print)


def test_shipped_list_names_each_package_once():
    text = catalogue_packages.files("mnmt_data.fetch").joinpath(PACKAGE_LIST).read_text(encoding="utf-8")
    names = [name for line in text.splitlines() if not line.startswith("#") for name in line.split()]
    assert len(names) == len(set(names)) > 50


def test_catalogues_and_licence_are_taken_out_once(apt, archive, tmp_path):
    said = []
    for _ in range(2):
        git, nano = fetch_packages(apt, ["git", "nano"], tmp_path / "out", report=said.append)
        assert (git.name, git.version, git.licences) == ("git", "4:7.4", ("GPL-2",))
        paths = [path.relative_to(git.folder) for path in sorted(git.folder.rglob("*")) if path.is_file()]
        assert list(map(str, paths)) == [
            "copyright",
            "usr/share/git/po/fr.po",
            "usr/share/locale/de/LC_MESSAGES/git.mo",
        ]
        assert (nano.licences, nano.copyright) == ((), "Do as you like.")
        assert not list(apt.packages.iterdir())
        for package in archive.glob("[gn]*.deb"):
            package.write_bytes(b"not read again")
    assert said[:2] == [
        "git 4:7.4: GPL-2",
        "nano 4:7.4: its copyright file names no licence in a form that is known; read it",
    ]


def test_package_with_a_path_out_of_it_is_refused(apt, tmp_path):
    with pytest.raises(DataError, match=r"evil_4%3a7.4_all.deb: the member '.*/escape.mo' leads out"):
        fetch_packages(apt, ["evil"], tmp_path / "a/b/out", report=print)
    assert not list(tmp_path.rglob("escape.mo"))


MACHINE_READABLE = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: x
License: GPL-3+

Files: *
Copyright: 2020 A
License: GPL-2+ or Artistic-1
 The text, which may be in /usr/share/common-licenses/GPL-2 of a system.

Files: debian/*
License: GPL-3+

License: GPL-3+
 License: this line belongs to the text
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (MACHINE_READABLE, ("GPL-2+ or Artistic-1", "GPL-3+")),
        ("See /usr/share/common-licenses/GPL-2, `/usr/share/common-licenses/LGPL'.", ("GPL-2", "LGPL")),
        ("See /usr/share/common-licenses/GFDL-1.3.\n", ("GFDL-1.3",)),
        ("Do as you like.", ()),
    ],
)
def test_licences_that_a_copyright_file_names(text, names):
    assert licences(text) == names


@pytest.fixture
def documentation(debian_machine):
    doc = "./usr/share/doc"
    return debian_machine(
        {
            "plain": {f"{doc}/other/copyright": b"not this", f"{doc}/plain/copyright": b"of plain"},
            "gcc-locales": {f"{doc}/gcc-locales": "gcc-base"},
            "gcc-base": {f"{doc}/gcc-base/copyright": b"of gcc"},
            "file-link": {f"{doc}/file-link/copyright": "../gcc-base/copyright"},
            "bare": {"./usr/bin/bare": b""},
            "lost": {f"{doc}/lost": "nowhere"},
            "circle": {f"{doc}/circle": "circle"},
        }
    )


@pytest.mark.parametrize(
    ("package", "text"),
    [("plain", "of plain"), ("gcc-locales", "of gcc"), ("file-link", "of gcc"), ("bare", ""), ("circle", "")],
)
def test_copyright_file_is_where_the_package_has_it(documentation, tmp_path, package, text):
    apt = Apt(tmp_path / "downloads", report=print)
    assert copyright_file(apt, documentation / f"{package}_4%3a7.4_all.deb") == text


def test_link_to_a_package_that_is_not_there_is_one_line(documentation, tmp_path):
    apt = Apt(tmp_path / "downloads", report=print)
    with pytest.raises(DataError, match="apt-get download: "):
        copyright_file(apt, documentation / "lost_4%3a7.4_all.deb")
