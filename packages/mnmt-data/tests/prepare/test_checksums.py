import hashlib
import os
import time

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import checksums
from mnmt_data.prepare.checksums import ChecksumCache, checksums_of
from mnmt_data.prepare.stages import Stages


@pytest.fixture
def files(tmp_path):
    """Files that have been there for some time, two of them of the same content."""
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, content in zip(paths, (b"", b"x" * 300_000, b""), strict=True):
        path.write_bytes(content)
        os.utime(path, (time.time() - 100, time.time() - 100))
    return paths


def expected(paths):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_checksums_are_those_of_hashlib_in_order(files):
    lines = []
    with Stages(report=lines.append) as stages:
        assert list(checksums_of(files, stages).items()) == list(expected(files).items())
    assert lines == []


def test_only_what_has_changed_is_read_again(files, tmp_path, monkeypatch):
    with Stages() as stages:
        cache = ChecksumCache(tmp_path / "cache.json", stages)
        assert cache.of(files) == expected(files)
        cache.save()
        files[2].write_bytes(b"new")
        read, checksum = [], checksums.checksum
        monkeypatch.setattr(checksums, "checksum", lambda path: read.append(path) or checksum(path))
        again = ChecksumCache(tmp_path / "cache.json", stages)
        assert again.of(files) == expected(files)
    assert read == [files[2]]


def test_a_file_that_changed_a_moment_ago_is_not_remembered(files, tmp_path, monkeypatch):
    os.utime(files[0])
    with Stages() as stages:
        cache = ChecksumCache(tmp_path / "cache.json", stages)
        cache.of(files)
        read = []
        monkeypatch.setattr(checksums, "checksum", lambda path: read.append(path) or "0")
        assert cache.of(files)[files[0]] == "0"
    assert read == [files[0]]


def test_a_changed_file_is_named(files, tmp_path):
    with Stages() as stages:
        cache = ChecksumCache(tmp_path / "cache.json", stages)
        cache.of(files)
        cache.check_unchanged()
        files[1].unlink()
        with pytest.raises(DataError, match=r"b: changed while it was read"):
            cache.check_unchanged()
