from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mnmt_eval.runs import run_files
from mnmt_eval.runs.run_files import StoredTranslations
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.text import read_lines
from mnmt_eval.translate import ScoredTranslation, Translation

SRC = [f"s{number}" for number in range(10)]
EXPECTED = [f"T {line}" for line in SRC]


class Killed(BaseException):
    pass


class Translator:
    """Translates, and is killed after some chunks."""

    def __init__(self, chunks: int | None = None) -> None:
        self.chunks = chunks
        self.lines: list[str] = []

    def __call__(self, lines: Sequence[str]) -> list[Translation]:
        if self.chunks is not None and len(self.lines) >= 4 * self.chunks:
            raise Killed
        self.lines += lines
        candidates = (ScoredTranslation(text=f"T {line}", score=0.0, log_prob=0.0) for line in lines)
        return [Translation(n_best=(candidate,)) for candidate in candidates]


@pytest.fixture(autouse=True)
def chunks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "CHUNK", 4)


def stored(
    folder: Path, *, step: int = 7, search: str = "beam:1", src: Sequence[str] = SRC
) -> StoredTranslations:
    text = ReferenceText(testset="test", task="en-de", src=src, references=[src])
    return StoredTranslations(folder=folder, text=text, step=step, search=search)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "translations").iterdir())


def test_translations_are_written_once_and_read_again(tmp_path: Path) -> None:
    progress: list[int] = []
    assert stored(tmp_path).get(Translator()) == EXPECTED
    assert stored(tmp_path).get(Translator(chunks=0), on_existing=progress.append) == EXPECTED
    assert progress == [10]
    assert names(tmp_path) == ["test.en-de.json", "test.en-de.txt"]
    assert read_lines(tmp_path / "translations" / "test.en-de.txt") == EXPECTED


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_what_was_translated_before_a_kill_is_not_translated_again(tmp_path: Path, chunks: int) -> None:
    with pytest.raises(Killed):
        stored(tmp_path).get(Translator(chunks))
    again = Translator()
    progress: list[int] = []
    assert stored(tmp_path).get(again, on_existing=progress.append) == EXPECTED
    assert again.lines == SRC[4 * chunks :]
    assert progress == [4 * chunks]
    assert names(tmp_path) == ["test.en-de.json", "test.en-de.txt"]


@pytest.mark.parametrize("half", ["T", "T s4\n", "T s4\nT s5\nT s6\nT s7\n"])
def test_a_chunk_that_was_half_written_is_translated_again(tmp_path: Path, half: str) -> None:
    with pytest.raises(Killed):
        stored(tmp_path).get(Translator(1))
    (partial,) = (tmp_path / "translations").glob("*.partial")
    with partial.open("a", encoding="utf-8") as file:
        file.write(half)  # as if killed before the record counted it
    again = Translator()
    assert stored(tmp_path).get(again) == EXPECTED
    assert again.lines == SRC[4:]


def test_a_kill_between_description_and_translations_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path, search="beam:4").get(Translator())
    replace = Path.replace

    def killed_at_the_end(path: Path, target: Path) -> Path:
        if path.suffix == ".partial":
            raise Killed
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed_at_the_end)
        with pytest.raises(Killed):
            stored(tmp_path).get(Translator())
    assert stored(tmp_path).get(Translator(chunks=0)) == EXPECTED
    assert names(tmp_path) == ["test.en-de.json", "test.en-de.txt"]


@pytest.mark.parametrize(
    "other", [{"step": 8}, {"search": "beam:4"}, {"src": [*SRC[:-1], "other"]}, {"src": SRC[:-1]}]
)
def test_translations_made_otherwise_are_not_taken(tmp_path: Path, other: dict[str, object]) -> None:
    stored(tmp_path).get(Translator())
    with pytest.raises(Killed):
        stored(tmp_path, search="beam:9").get(Translator(1))
    again = Translator()
    changed = stored(tmp_path, **other)  # type: ignore[arg-type]
    assert changed.get(again) == [f"T {line}" for line in changed.text.src]
    assert again.lines == list(changed.text.src)
    assert names(tmp_path) == ["test.en-de.json", "test.en-de.txt"]
