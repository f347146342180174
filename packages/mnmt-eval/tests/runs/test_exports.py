"""Exports of checkpoints, made once, and made again when they no longer fit."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.runs import exports
from mnmt_eval.runs.exports import find_export
from mnmt_model import RunError, average_checkpoints
from mnmt_model.export import Certificate, conversion
from mnmt_model.runs.load import open_checkpoint


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were exported to."""
    folders: list[Path] = []

    def export_run(run: Path, out: Path, *, checkpoint: Path) -> Certificate:
        folders.append(out)
        return real(run, out, checkpoint=checkpoint)

    real = exports.export_run
    monkeypatch.setattr(exports, "export_run", export_run)
    return folders


def test_an_export_is_made_once_and_again_if_it_has_changed(tiny_run: Path, counted: list[Path]) -> None:
    run, messages = open_checkpoint(tiny_run), []
    folder = find_export(run, on_export=messages.append)
    assert folder.name == "ctranslate2"
    assert folder.parent.name.startswith("step-00000040-")
    assert find_export(run, on_export=messages.append) == folder
    assert len(counted) == len(messages) == 1

    def damage_model() -> None:
        (folder / "model.bin").write_bytes(b"other")

    def damage_record() -> None:
        (folder.parent / "export.json").write_text("[", encoding="utf-8")

    def refuse() -> None:
        certificate = folder.parent / "certificate.json"
        content = json.loads(certificate.read_text(encoding="utf-8"))
        certificate.write_text(json.dumps({**content, "agrees": False}), encoding="utf-8")

    def kill() -> None:
        (folder.parent / "export.json").unlink()

    for number, change in enumerate([damage_model, damage_record, refuse, kill], start=2):
        change()
        assert find_export(run) == folder
        assert len(counted) == number


def test_each_version_of_ctranslate2_has_an_export_of_its_own(
    tiny_run: Path, counted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_checkpoint(tiny_run)
    folder = find_export(run)
    with monkeypatch.context() as patched:
        patched.setattr(exports, "version", lambda package: "9.8.7")
        other = find_export(run)
    assert other.parent.name.endswith("-9.8.7")
    assert find_export(run) == folder
    assert len(counted) == 2


def test_an_average_has_an_export_of_its_own(tiny_run: Path, counted: list[Path]) -> None:
    average = tiny_run / "averages" / "last-1"
    average_checkpoints([tiny_run / "checkpoints" / "step-00000040"], average)
    folder = find_export(open_checkpoint(average))
    assert folder.parent.parent == tiny_run / "exports"
    assert folder.parent.name.startswith("last-1-")
    assert len(counted) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "layer"}, "can be exported"),
        ({"num_experts": 4}, "CTranslate2 has no mixtures of experts, but `num_experts` is 4"),
    ],
)
def test_a_model_that_cannot_be_exported_leaves_nothing(
    tiny_run: Path, changes: dict[str, object], message: str
) -> None:
    run = open_checkpoint(tiny_run)
    model = {**run.record.config["model"], **changes}
    other = replace(run, record=replace(run.record, config={**run.record.config, "model": model}))
    with pytest.raises(RunError, match=message):
        find_export(other)
    assert not (tiny_run / "exports").exists()


def test_a_missing_package_leaves_nothing(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnmt_eval.translate.engine_config.find_spec", lambda module: None)
    with pytest.raises(EvalError, match=r"needs transformers, .*mnmt-model\[export\]"):
        find_export(open_checkpoint(tiny_run))
    assert not (tiny_run / "exports").exists()


def test_an_export_that_disagrees_is_not_used(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certify = partial(conversion.certify, tolerance=-1.0)
    monkeypatch.setattr(conversion, "certify", certify)
    for _ in range(2):
        with pytest.raises(RunError, match="does not agree with"):
            find_export(open_checkpoint(tiny_run))
    names = [path.name for path in (tiny_run / "exports").iterdir() if path.is_dir()]
    assert [name.rpartition(".")[2] for name in names] == ["failed"]
