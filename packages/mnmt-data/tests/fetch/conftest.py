"""A machine where apt-get fetches packages out of a folder."""

import io
import tarfile

import pytest

PROGRAMS = {
    "apt-get": """#!/bin/sh
while [ "$1" != update ] && [ "$1" != download ]; do shift; done
verb=$1; shift; [ $verb = update ] && exit 0
if [ "$1" = --print-uris ]; then
    shift
    for name in "$@"; do for file in ARCHIVE/${name}_*.deb; do echo "'file:$file' ${file##*/} 1 x"; done; done
    exit 0
fi
for name in "$@"; do cp ARCHIVE/${name}_*.deb .; done
""",
    "apt-cache": """#!/bin/sh
cd ARCHIVE && for file in "$4"*.deb; do echo "${file%%_*}"; done
""",
}


@pytest.fixture
def make_package():
    """Makes a .deb of {path: content}; a content that is a str is the end of a link."""

    def make(path, files):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:xz") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                if isinstance(content, str):
                    info.type, info.linkname, content = tarfile.SYMTYPE, content, b""
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"", "data.tar.xz": data.getvalue()}
        headers = (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(part):<10}`\n" for name, part in parts.items()
        )
        padded = (part + b"\n" * (len(part) % 2) for part in parts.values())
        members = (header.encode() + part for header, part in zip(headers, padded, strict=True))
        path.write_bytes(b"!<arch>\n" + b"".join(members))
        return path

    return make


@pytest.fixture
def debian_machine(tmp_path, monkeypatch, make_package):
    """Fills the machine with packages, {name: {path: content}}, and returns the folder of their archive."""

    def install(packages):
        archive, programs = tmp_path / "archive", tmp_path / "bin"
        archive.mkdir()
        programs.mkdir()
        for name, script in PROGRAMS.items():
            (programs / name).write_text(script.replace("ARCHIVE", str(archive)), encoding="utf-8")
            (programs / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        for name, files in packages.items():
            make_package(archive / f"{name}_4%3a7.4_all.deb", files)
        return archive

    return install
