import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Apt
from mnmt_data.fetch.licences import copyright_file, licences

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
def archive(debian_machine):
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
def test_copyright_file_is_where_the_package_has_it(archive, tmp_path, package, text):
    apt = Apt(tmp_path / "downloads", report=print)
    assert copyright_file(apt, archive / f"{package}_4%3a7.4_all.deb") == text


def test_link_to_a_package_that_is_not_there_is_one_line(archive, tmp_path):
    apt = Apt(tmp_path / "downloads", report=print)
    with pytest.raises(DataError, match="apt-get download: "):
        copyright_file(apt, archive / "lost_4%3a7.4_all.deb")
