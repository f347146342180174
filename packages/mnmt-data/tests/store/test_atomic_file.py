import json
import os

import pytest

from mnmt_data.store.atomic_file import atomic_file, remove_temporaries, write_json


def test_a_file_takes_its_name_when_it_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_was_there_stays_when_writing_fails(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write():
        with atomic_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises((KeyboardInterrupt, OSError)) as raised:
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    assert raised.type is KeyboardInterrupt or raised.value.filename == str(path)


def test_what_killed_writers_left_is_removed(tmp_path):
    (tmp_path / "below").mkdir()
    write_json(tmp_path / "below/kept.json", {"ü": [1]})
    for folder in (tmp_path, tmp_path / "below"):
        (folder / f".kept.json.{os.getpid()}.tmp").write_text("{")
    remove_temporaries(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["below", "kept.json"]
    assert json.loads((tmp_path / "below/kept.json").read_text(encoding="utf-8")) == {"ü": [1]}
