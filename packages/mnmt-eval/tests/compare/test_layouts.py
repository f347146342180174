from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_eval.compare.layouts import read_submissions

PAIR = {
    "by pair": {
        "testset": "wmt24",
        "outputs": "system-outputs/en-de/{system}.txt",
        "references": "references/en-de.{name}.txt",
        "source": "sources/en-de.txt",
    },
    "dotted": {
        "testset": "generaltest2023",
        "outputs": "system-outputs/generaltest2023.en-de.hyp.{system}.de",
        "references": "references/generaltest2023.en-de.ref.{name}.de",
        "source": "sources/generaltest2023.en-de.src.en",
    },
    "dotted, in folders": {
        "testset": "newstest2020",
        "outputs": "system-outputs/newstest2020/en-de/newstest2020.en-de.hyp.{system}.de",
        "references": "references/newstest2020.en-de.ref.{name}.de",
        "source": "sources/newstest2020.en-de.src.en",
    },
    "old": {
        "testset": "newstest2019",
        "outputs": "system-outputs/newstest2019/en-de/newstest2019.{system}.en-de",
        "references": "references/newstest2019-ende-ref.de",
        "source": "sources/newstest2019-ende-src.en",
    },
}


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a\n", encoding="utf-8")
    return path


@pytest.fixture(params=PAIR.values(), ids=PAIR)
def layout(request: pytest.FixtureRequest) -> dict[str, str]:
    """The names of a layout."""
    names: dict[str, str] = request.param
    return names


def test_systems_references_and_source_of_each_layout_are_read(
    tmp_path: Path, layout: dict[str, str]
) -> None:
    folder = tmp_path / "wmt24"
    systems = {
        name: touch(folder / layout["outputs"].format(system=name)) for name in ("ONLINE-B", "m2m_1.2B")
    }
    names = ("refA", "refB") if "{name}" in layout["references"] else ("ref",)
    references = [touch(folder / layout["references"].format(name=name)) for name in names]
    source = touch(folder / layout["source"])
    touch(folder / "system-outputs" / "README.md")
    touch(folder / "references" / "de-fr.refA.txt")
    texts = read_submissions(folder)
    assert texts is not None
    (text,) = texts
    assert (text.testset, text.task, text.systems) == (layout["testset"], "en-de", systems)
    assert (text.references, text.source) == (tuple(references), source)


def test_a_part_of_the_folder_is_the_part_of_its_systems(tmp_path: Path) -> None:
    for task in ("en-de", "en-cs", "zh-en"):
        touch(tmp_path / "system-outputs" / task / "ours.txt")
        touch(tmp_path / "references" / f"{task}.refA.txt")
    for place, tasks in {"": 3, "system-outputs": 3, "system-outputs/en-cs": 1}.items():
        texts = read_submissions(tmp_path / place)
        assert texts is not None
        assert len(texts) == tasks
        assert all(len(text.references) == 1 for text in texts)


def test_a_reference_is_no_system(tmp_path: Path) -> None:
    for name in ("refA", "refB", "ours"):
        touch(tmp_path / "system-outputs" / "en-de" / f"{name}.txt")
    touch(tmp_path / "references" / "en-de.refA.txt")
    texts = read_submissions(tmp_path)
    assert texts is not None
    assert list(texts[0].systems) == ["ours", "refB"]


def test_another_folder_has_no_layout(tmp_path: Path) -> None:
    touch(tmp_path / "en-de" / "ours.txt")
    assert read_submissions(tmp_path) is None
    assert read_submissions(tmp_path / "en-de" / "ours.txt") is None
