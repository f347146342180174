from __future__ import annotations

from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from mnmt_eval.compare.sacrebleu_testsets import sacrebleu_files
from mnmt_eval.errors import EvalError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sacreBLEU keeps its test sets, which is empty; whatever would download fails."""
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("nothing may be downloaded")

    monkeypatch.setattr("sacrebleu.utils.download_file", fail)
    monkeypatch.setattr("sacrebleu.dataset.base.download_file", fail)
    return tmp_path


def write(folder: Path, name: str, *fields: str) -> list[Path]:
    paths = [folder / name / f"{name.replace('/', '_')}.en-de.{field}" for field in fields]
    for path in paths:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("a\n", encoding="utf-8")
    return paths


def test_files_are_those_of_sacrebleu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = DATASETS["wmt19"]
    monkeypatch.setattr(dataset, "_outdir", str(folder / "wmt19"))
    monkeypatch.setattr(dataset, "_rawdir", str(folder / "wmt19" / "raw"))
    source, reference, *_ = write(folder, "wmt19", *dataset.fieldnames("en-de"))
    assert sacrebleu_files("wmt19", "en-de") == ((reference,), source)
    assert dataset.get_reference_files("en-de") == [str(reference)]
    assert dataset.get_source_file("en-de") == str(source)


def test_of_several_references_those_are_taken_that_the_test_set_names(folder: Path) -> None:
    source, reference, *_ = write(folder, "wmt22", "src", "ref-A", "ref-B", "Online-B")
    assert sacrebleu_files("wmt22", "en-de") == ((reference,), source)


def test_a_part_of_a_test_set_has_its_folder(folder: Path) -> None:
    source, _, *references = write(folder, "wmt21/AC", "src", "ref-B", "ref-A", "ref-C")
    assert sacrebleu_files("wmt21/AC", "en-de") == (tuple(references), source)


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("wmt-19", "en-de", "no such test set; it has .*wmt19"),
        ("wmt19", None, "needs its language pair; name it with --task; there are .*en-de"),
        ("wmt19", "en-sw", "has no en-sw; there are .*en-de"),
        (
            "wmt19",
            "en-de",
            r"does not hold its en-de yet; `sacrebleu -t wmt19 -l en-de --echo src > en-de.src`",
        ),
    ],
)
def test_what_is_not_there_is_named_and_not_fetched(
    folder: Path, name: str, task: str | None, message: str
) -> None:
    with pytest.raises(EvalError, match=message):
        sacrebleu_files(name, task)
    assert not list(folder.iterdir())
