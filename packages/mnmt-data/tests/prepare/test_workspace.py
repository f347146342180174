"""Stopped at any moment, by whatever, `prepare` goes on to the same bytes."""

import errno
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import encode, prepare_study, stages
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.store.lock import file_lock
from mnmt_data.store.prepared import open_prepared
from mnmt_data.study import read_study

STUDY = """
name = "resumed"
[data]
tasks = ["en-de", "en-fr"]
test_corpora = {{ news = "{folder}/news" }}
dev_sentences = 10
test_sentences = 10
[data.files.train]
en-de = ["{folder}/a.{{lang}}", "{folder}/b.{{lang}}"]
en-fr = ["{folder}/a.{{lang}}", "{folder}/b.{{lang}}"]
[data.vocab]
size = 320
"""
SCRIPT = """
import sys
from pathlib import Path
from mnmt_data.prepare import encode, prepare_study, stages
from mnmt_data.study import read_study
encode.SEGMENT_PAIRS, stages.STARTING_PAIRS = 60, 0
if __name__ == "__main__":
    prepare_study(read_study("study.toml"), Path(sys.argv[1]), jobs=2)
"""


def text(language, count, seed):
    draw = random.Random(f"{language}{seed}")
    words = [language + "".join(draw.choices("bdfgklmn", k=4)) for _ in range(50)]
    return "".join(" ".join(draw.choices(words, k=6)) + "\n" for _ in range(count))


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "news").mkdir()
    for language in ("en", "de", "fr"):
        (folder / f"a.{language}").write_text(text(language, 120, 1))
        (folder / f"b.{language}").write_text(text(language, 80, 2))
    for language in ("en", "de"):
        (folder / f"news/news.en-de.{language}").write_text(text(language, 5, 3))
    (folder / "study.toml").write_text(STUDY.format(folder=folder))
    (folder / "prepare.py").write_text(SCRIPT)
    return folder


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(encode, "SEGMENT_PAIRS", 60)


@pytest.fixture(scope="module")
def whole(folder):
    """What an uninterrupted call prepares, in this process alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "SEGMENT_PAIRS", 60)
        return contents(prepare_study(read_study(folder / "study.toml"), folder / "whole", jobs=1).folder)


@pytest.fixture
def prepare(folder, tmp_path, small_segments):
    return lambda count=1: prepare_study(read_study(folder / "study.toml"), tmp_path / "out", jobs=count)


class Disk:
    """Counts the files that are written, and has no room after so many."""

    def __init__(self, monkeypatch):
        self.room = 10**9
        fsync = os.fsync

        def write(file):
            self.room -= 1
            if self.room < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(file)

        monkeypatch.setattr(os, "fsync", write)


def test_a_shard_of_several_segments_is_one(whole, folder):
    names = [str(path) for path in whole]
    assert {f"shards/train.en-de/0000{number}.arrow" for number in range(2)} <= set(names)
    data = open_prepared(folder / "whole/data")
    assert len(data.shard("train", "en-de")) == data.train_counts["en-de"].pairs > 120


def test_several_processes_write_the_same_bytes(prepare, whole, monkeypatch):
    monkeypatch.setattr(stages, "STARTING_PAIRS", 0)
    assert contents(prepare(2).folder) == whole


@pytest.mark.slow
def test_a_disk_full_at_every_write_is_told_and_gone_on_from(prepare, whole, tmp_path, monkeypatch):
    disk, failures, data = Disk(monkeypatch), 0, None
    while data is None:
        disk.room = failures
        try:
            data = prepare()
        except DataError as error:
            failures += 1
            told = str(error)
            assert not (tmp_path / "out/data").exists()
    assert failures > 10
    assert told.startswith(f"{tmp_path}/out: No space left on device")
    assert told.endswith("; make room and prepare again, which continues from here.")
    assert contents(data.folder) == whole
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".data.digests.json",
        ".data.lock",
        "data",
    ]


def test_what_is_done_is_not_done_again(prepare, monkeypatch, tmp_path):
    disk = Disk(monkeypatch)
    disk.room = 15
    with pytest.raises(DataError):
        prepare()
    partial = tmp_path / "out/.data.partial"
    before = {path: path.stat().st_mtime_ns for path in partial.rglob("*.arrow")}
    assert before
    disk.room = 10
    with pytest.raises(DataError):
        prepare()
    after = {path: path.stat().st_mtime_ns for path in partial.rglob("*.arrow")}
    assert before.items() <= after.items()


def test_other_settings_start_anew(prepare, folder, whole, tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    disk.room = 12
    study = folder / "other.toml"
    study.write_text((folder / "study.toml").read_text().replace("size = 320", "size = 300"))
    with pytest.raises(DataError):
        prepare_study(read_study(study), tmp_path / "out", jobs=1)
    disk.room = 10**9
    assert contents(prepare().folder) == whole


def test_a_failed_run_leaves_what_was_there(prepare, folder, whole, tmp_path, monkeypatch):
    prepare()
    study = folder / "longer.toml"
    study.write_text((folder / "study.toml").read_text() + 'kind = "bpe"\n')

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("mnmt_data.prepare.pipeline.prepare_vocabulary", stop)
    with pytest.raises(KeyboardInterrupt):
        prepare_study(read_study(study), tmp_path / "out", jobs=1)
    assert contents(tmp_path / "out/data") == whole


@pytest.mark.parametrize("name", ["data", ".data.partial"])
def test_killed_between_the_last_two_renames(prepare, whole, tmp_path, name, monkeypatch):
    publish = Workspace.publish
    monkeypatch.setattr(Workspace, "publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        prepare()
    if name == "data":  # an older one, moved away
        (tmp_path / "out/.data.old").mkdir()
    monkeypatch.setattr(Workspace, "publish", publish)
    assert contents(prepare().folder) == whole
    assert not (tmp_path / "out/.data.old").exists()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "writes", [10, *(pytest.param(writes, marks=pytest.mark.slow) for writes in (1, 4, 7, 13, 16, 19, 22))]
)
def test_killed_at_a_write_of_any_stage_it_goes_on_to_the_same_bytes(prepare, whole, tmp_path, writes):
    if (child := os.fork()) == 0:
        remaining = iter(range(writes))
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL) if next(remaining, None) is None else None
        prepare()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert not (tmp_path / "out/data").exists()
    assert contents(prepare().folder) == whole


@pytest.mark.slow
def test_killed_processes_leave_what_the_next_goes_on_from(folder, whole, tmp_path):
    out, command = tmp_path / "out", [sys.executable, "prepare.py", str(tmp_path / "out")]
    for files in (8, 30):
        process = subprocess.Popen(command, cwd=folder)
        while process.poll() is None and len(list(out.rglob("*.*"))) < files:
            time.sleep(0.002)
        process.kill()
        if process.wait() == 0:
            break
        assert process.returncode == -signal.SIGKILL
        assert not (out / "data").exists() or contents(out / "data") == whole
    subprocess.run(command, cwd=folder, check=True)
    assert contents(out / "data") == whole


@pytest.mark.slow
def test_a_file_larger_than_the_limit_is_one_line_and_2(folder, whole, tmp_path):
    run = "mnmt_data", "prepare", "study.toml", "--out", str(tmp_path), "--jobs", "1"
    loaded = "from mnmt_data.filters.language_id import Py3langid; Py3langid().labels"  # into a file, too
    limited = (
        f"import resource, runpy, sys; {loaded}; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); \
sys.argv = {list(run)}; runpy.run_module('mnmt_data', run_name='__main__')"
    )
    failed = subprocess.run(
        [sys.executable, "-c", limited], cwd=folder, capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    assert failed.stdout == ""
    last = failed.stderr.splitlines()[-1]
    assert last.startswith(f"mnmt-data: {tmp_path}: File too large (")
    assert "Traceback" not in failed.stderr
    assert not (tmp_path / "data").exists()
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_second_one_at_work_is_refused(prepare, tmp_path):
    (tmp_path / "out").mkdir()
    with file_lock(tmp_path / "out/.data.lock", name="out"), pytest.raises(DataError) as raised:
        prepare()
    assert str(raised.value) == (f"{tmp_path}/out: another process is writing it; wait for it or stop it.")
    prepare()
