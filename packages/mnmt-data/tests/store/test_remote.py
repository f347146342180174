"""Text and prepared data at URLs, from a server on this machine and from fsspec's file system in memory."""

import gzip
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from zipfile import ZipFile

import numpy as np
import pytest

from mnmt_data import BatchStream, DataError, Mixture, open_prepared
from mnmt_data.prepare import prepare_study
from mnmt_data.readers import open_readers
from mnmt_data.store.remote import is_url, local_copy
from mnmt_data.study import read_study

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

PAIRS = [(f"The house of number {n} is old.", f"Das Haus Nummer {n} ist alt.") for n in range(300)]

STUDY = """
name = "mine"
[data]
tasks = ["en-de"]
{text}
dev_sentences = 20
test_sentences = 20
[data.clean]
language_id = false
[data.leaks]
ngrams = false
normal_form = false
[data.vocab]
size = 330
"""


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, counts what is sent, and may announce more bytes than it sends."""

    sent: ClassVar[Counter[str]] = Counter()
    is_cut = False

    def do_GET(self):
        Handler.sent[self.path] += 1
        super().do_GET()

    def send_header(self, keyword, value):
        if keyword == "Content-Length" and Handler.is_cut:
            value = str(int(value) + 10)
        super().send_header(keyword, value)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder and its URL; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "served"
    folder.mkdir()
    Handler.sent.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def write_text(folder, pairs=PAIRS):
    sides = [("".join(f"{pair[side]}\n" for pair in pairs)).encode() for side in (0, 1)]
    (folder / "train.en-de.en").write_bytes(sides[0])
    (folder / "train.en-de.de.gz").write_bytes(gzip.compress(sides[1]))
    with ZipFile(folder / "opus.zip", "w") as archive:
        archive.writestr("x.de-en.en", sides[0])
        archive.writestr("x.de-en.de", sides[1])
    lines = [f"{src}\t{tgt}\n" for src, tgt in pairs]
    for part, chosen in enumerate((lines[:100], lines[100:])):
        (folder / f"part-{part}.tsv").write_text("".join(chosen), encoding="utf-8")
    for code, side in zip(("en", "de"), sides, strict=True):
        (folder / f"news.{code}").write_bytes(side)


def pairs_of(source):
    blocks = [block for reader in open_readers(source, "en-de") for block in reader.blocks()]
    return [pair for block in blocks for pair in zip(block.src, block.tgt, strict=True)]


NAMES = ["part-*.tsv", "news.{lang}", "n*s.{lang}"]


@pytest.mark.parametrize("name", [*NAMES, "opus.zip", "opus.zip?download=1"])
def test_text_at_a_url_is_that_of_the_file(served, name):
    folder, url = served
    write_text(folder)
    assert pairs_of(f"{url}/{name}") == PAIRS


@pytest.mark.parametrize("name", NAMES)
def test_any_file_system_of_fsspec_serves(served, name):
    folder, _ = served
    write_text(folder)
    fsspec.filesystem("memory").put(f"{folder}/", "/bucket/text/", recursive=True)
    assert pairs_of(f"memory://bucket/text/{name}") == PAIRS


def test_a_file_is_fetched_once_and_again_when_it_has_changed(served):
    folder, url = served
    file = folder / "a.tsv"
    for content in ("one\teins\n", "one more\tnoch eins\n"):
        file.write_text(content, encoding="utf-8")
        for _ in range(2):
            assert local_copy(f"{url}/a.tsv").read_text(encoding="utf-8") == content
    assert Handler.sent["/a.tsv"] == 2


def refuse(*arguments, **options):
    raise OSError("no route to host")


@pytest.mark.usefixtures("served")
def test_an_unreachable_server_leaves_the_copy(caplog):
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/b.tsv", b"x\ty\n")
    copy = local_copy("memory://bucket/b.tsv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory), "info", refuse)
        assert local_copy("memory://bucket/b.tsv") == copy
        assert f"cannot be had (no route to host); its copy {copy} is used" in caplog.text
    memory.rm("/bucket/b.tsv")
    with pytest.raises(DataError, match=r"memory://bucket/b\.tsv: no such file there"):
        local_copy("memory://bucket/b.tsv")


def test_mistakes_are_one_line(served, cli, tmp_path):
    folder, url = served
    (folder / "a.tsv").write_text("x\ty\n", encoding="utf-8")
    closed = "http://127.0.0.1:9/a.tsv"
    study = tmp_path / "study.toml"
    for source, message in [
        (f"{url}/b.tsv", f"{url}/b.tsv: no such file there; see to its name."),
        (closed, f"{closed}: cannot be had (Connect call failed"),
        ("gs://bucket/a.tsv", "gs://bucket/a.tsv: needs gcsfs: pip install gcsfs."),
        ("strange://bucket/a.tsv", "strange://bucket/a.tsv: cannot be had (Protocol not known: strange)"),
        (f"{url}/c*.tsv", f"{url}/c*.tsv: no file matches; see to its name."),
    ]:
        study.write_text(STUDY.format(text=f'files.train.en-de = ["{source}"]'), encoding="utf-8")
        status, _, stderr = cli("prepare", study)
        assert (status, message in stderr, stderr.count("\n")) == (2, True, 1), stderr


def test_a_file_that_comes_cut_off_is_refused(served, monkeypatch):
    folder, url = served
    (folder / "a.tsv").write_text("x\ty\n", encoding="utf-8")
    monkeypatch.setattr(Handler, "is_cut", True)
    with pytest.raises(DataError, match=r"a\.tsv: "):
        local_copy(f"{url}/a.tsv")
    assert not list(folder.parent.glob("cache/**/a.tsv"))


def prepared(folder, text):
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY.format(text=text), encoding="utf-8")
    return prepare_study(read_study(folder / "study.toml"), folder, jobs=1)


def test_a_corpus_folder_at_a_url_prepares_to_the_same_files(served, tmp_path):
    folder, url = served
    write_text(folder)
    one = prepared(tmp_path / "one", f'corpus = "{folder}"')
    other = prepared(tmp_path / "other", f'corpus = "{url}"')
    assert one.description.files == other.description.files
    assert "/news.en" not in Handler.sent


def batches(data):
    shards = {task: data.shard("train", task) for task in data.tasks}
    stream = BatchStream(shards, Mixture({"en-de": 1.0}), batch_tokens=500, seed=1)
    return [stream.batch(step) for step in range(3)]


def test_prepared_data_at_a_url_give_the_same_batches(served, tmp_path, cli):
    folder, url = served
    write_text(folder)
    local = prepared(folder / "run", f'corpus = "{folder}"')
    fetched = open_prepared(f"{url}/run/data/")
    for one, other in zip(batches(local), batches(fetched), strict=True):
        np.testing.assert_array_equal(one.src, other.src)
    Handler.sent.clear()
    open_prepared(f"{url}/run/data")
    assert not Handler.sent
    assert cli("inspect", f"{url}/run/data", "--verify")[0] == 0
    status, _, stderr = cli("prepare", folder / "run" / "study.toml", "--from", f"{url}/run/data")
    assert status == 0, stderr
    assert open_prepared(tmp_path / "results" / "mine" / "data").fingerprint == local.fingerprint


def test_a_changed_file_of_prepared_data_is_named_and_the_rest_is_not_fetched_again(served):
    folder, url = served
    write_text(folder)
    local = prepared(folder / "run", f'corpus = "{folder}"')
    vocabulary = local.folder / "vocab.model"
    content = vocabulary.read_bytes()
    vocabulary.write_bytes(content[:-1] + b"?")
    with pytest.raises(DataError, match=r"vocab\.model: has changed"):
        open_prepared(f"{url}/run/data")
    vocabulary.write_bytes(content)
    open_prepared(f"{url}/run/data")
    twice = {path for path, count in Handler.sent.items() if count > 1}
    assert twice == {"/run/data/vocab.model"}


def test_no_file_is_written_outside_the_folder(served):
    folder, url = served
    write_text(folder)
    local = prepared(folder / "run", f'corpus = "{folder}"')
    files = {f"../../{name}": file for name, file in local.description.files.items()}
    replace(local.description, files=files).write(local.folder)
    with pytest.raises(DataError, match=r"prepared\.json: names \.\./\.\./\S+, which is outside"):
        open_prepared(f"{url}/run/data")


@pytest.mark.parametrize("source", ["C:/text/a.tsv", "raw/a.tsv", "~/a", "hf:owner/name:train", "a:b"])
def test_paths_are_no_urls(source):
    assert not is_url(source)
