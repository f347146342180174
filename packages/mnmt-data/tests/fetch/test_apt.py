import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt

REFUSED = "W: Failed to fetch http://example.org/InRelease  Connection refused"


@pytest.fixture
def said():
    return []


@pytest.fixture
def programs(tmp_path, monkeypatch, said):
    """Replaces apt-get and apt-cache by shell scripts."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")

    def install(apt_get="true", apt_cache="true"):
        for name, script in (("apt-get", apt_get), ("apt-cache", apt_cache)):
            program = tmp_path / "bin" / name
            program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            program.chmod(0o755)
        return Apt(tmp_path / "downloads", report=said.append)

    return install


def test_configuration_keeps_to_its_folder(programs, tmp_path):
    apt = programs('echo "$@" > ../arguments')
    apt.update(description_languages=["en", "zh_CN"])
    assert (tmp_path / "downloads/arguments").read_text() == f"-c {tmp_path}/downloads/apt.conf -q update\n"
    configuration = (tmp_path / "downloads/apt.conf").read_text(encoding="utf-8")
    assert f'Dir::State::Lists "{tmp_path}/downloads/lists";' in configuration
    assert f'Dir::Cache "{tmp_path}/downloads";' in configuration
    assert 'Acquire::Languages { "en"; "zh_CN"; };' in configuration


def test_no_descriptions_are_fetched_unless_asked_for(programs, tmp_path):
    programs().update()
    configuration = (tmp_path / "downloads/apt.conf").read_text(encoding="utf-8")
    assert 'Acquire::Languages { "none"; };' in configuration


DOWNLOAD = """
shift 4
if [ "$1" = --print-uris ]; then
    shift
    for name in "$@"; do
        # As apt-get does, say nothing of a package that is in the current folder already.
        [ -e ${name}_2%3a1_all.deb ] || echo "'http://example.org/x' ${name}_2%3a1_all.deb 10 SHA256:x"
    done
else
    for name in "$@"; do touch ${name}_2%3a1_all.deb; done
fi
"""


def test_download_gives_the_files_that_apt_names_in_order(programs):
    apt = programs(DOWNLOAD)
    (apt.packages / "b_9_all.deb").touch()
    for _ in range(2):
        found = apt.download(["b", "a"])
        assert [path.name for path in found] == ["b_2%3a1_all.deb", "a_2%3a1_all.deb"]
        assert all(path.is_file() for path in found)


def test_lists_are_found_by_language(programs):
    apt = programs(
        "cd ../lists; touch x_Translation-en y_Translation-en x_Translation-zh%5fCN x_Translation-en%5fGB"
    )
    apt.update()
    assert [path.name for path in apt.descriptions("en")] == ["x_Translation-en", "y_Translation-en"]
    assert [path.name for path in apt.descriptions("zh_CN")] == ["x_Translation-zh%5fCN"]
    assert (apt.has_descriptions("zh_CN"), apt.has_descriptions("CN")) == (True, False)


def test_languages_of_descriptions_are_in_the_release_files(programs):
    apt = programs()
    release = " 0123 456 main/i18n/Translation-{}\n 0123 45 main/i18n/Translation-{}.bz2\n"
    (apt.lists / "x_dists_stable_InRelease").write_text(
        release.format("zh_CN", "zh_CN") + release.format("en", "en"), encoding="utf-8"
    )
    (apt.lists / "y_dists_stable_Release").write_text(release.format("de", "de"), encoding="utf-8")
    assert apt.description_languages() == ["de", "en", "zh_CN"]


def test_error_of_apt_get_is_one_line(programs):
    apt = programs("echo Reading lists; echo 'E: Unable to locate package x'; echo 'E: more' >&2; exit 100")
    with pytest.raises(DataError) as raised:
        apt.download(["x"])
    assert str(raised.value) == "apt-get download: E: Unable to locate package x"


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (lambda apt: apt.descriptions("de"), "no package descriptions in 'de'."),
        (lambda apt: apt.description_languages(), "no package descriptions."),
        (lambda apt: apt.names("help-"), "no packages help-*."),
    ],
)
def test_unreachable_network_is_told_when_something_is_missing(programs, said, ask, missing):
    apt = programs(f"echo '{REFUSED}'")
    apt.update()
    assert said == [f"continuing with the other lists ({REFUSED})"]
    with pytest.raises(DataError) as raised:
        ask(apt)
    assert str(raised.value) == f"apt-get update: {missing} ({REFUSED})"


def test_system_without_apt_get_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        DataError, match="apt-get: no such command; only a Debian system can fetch this corpus"
    ):
        Apt(tmp_path / "downloads", report=print).update()
