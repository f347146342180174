import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch import catalogue_packages
from mnmt_data.fetch.apt import Apt
from mnmt_data.fetch.catalogue_packages import PACKAGE_LIST, choose_packages, fetch_packages

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
