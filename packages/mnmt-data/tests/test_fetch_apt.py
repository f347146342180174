import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt


@pytest.fixture
def apt_get(tmp_path, monkeypatch):
    """Replaces apt-get by a shell script."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")

    def install(script):
        program = tmp_path / "bin/apt-get"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        return Apt(tmp_path / "downloads", description_languages=["en", "zh_CN"])

    return install


def test_configuration_keeps_to_its_folder(apt_get, tmp_path):
    apt = apt_get('echo "$@" > ../arguments')
    apt.update()
    assert (tmp_path / "downloads/arguments").read_text() == f"-q -c {tmp_path}/downloads/apt.conf update\n"
    configuration = (tmp_path / "downloads/apt.conf").read_text(encoding="utf-8")
    assert f'Dir::State::Lists "{tmp_path}/downloads/lists";' in configuration
    assert f'Dir::Cache "{tmp_path}/downloads";' in configuration
    assert 'Acquire::Languages { "en"; "zh_CN"; };' in configuration


def test_download_gives_the_newest_file_of_each_package(apt_get):
    apt = apt_get("touch -d 2020-01-01 a_1_all.deb; touch a_2_all.deb b_1_all.deb ab_9_all.deb")
    assert [path.name for path in apt.download(["b", "a"])] == ["b_1_all.deb", "a_2_all.deb"]


def test_lists_are_found_by_language(apt_get):
    apt = apt_get(
        "cd ../lists; touch x_Translation-en y_Translation-en x_Translation-zh%5fCN x_Translation-en%5fGB"
    )
    apt.update()
    assert [path.name for path in apt.descriptions("en")] == ["x_Translation-en", "y_Translation-en"]
    assert [path.name for path in apt.descriptions("zh_CN")] == ["x_Translation-zh%5fCN"]


def test_error_of_apt_get_is_one_line(apt_get):
    apt = apt_get("echo Reading lists; echo 'E: Unable to locate package x'; echo 'E: more' >&2; exit 100")
    with pytest.raises(DataError) as raised:
        apt.download(["x"])
    assert str(raised.value) == "apt-get download: E: Unable to locate package x"


def test_unreachable_network_is_told_when_something_is_missing(apt_get):
    refused = "W: Failed to fetch http://example.org/InRelease  Connection refused"
    apt = apt_get(f"echo '{refused}'")
    apt.update()
    with pytest.raises(DataError) as raised:
        apt.descriptions("de")
    assert str(raised.value) == f"apt-get update: no package descriptions in 'de'. ({refused})"


def test_system_without_apt_get_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        DataError, match="apt-get: no such command; only a Debian system can fetch this corpus"
    ):
        Apt(tmp_path / "downloads").update()
