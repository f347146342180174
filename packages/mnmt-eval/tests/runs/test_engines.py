"""Exports of checkpoints, made once, and made again when they no longer fit."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mnmt_eval.runs import engines
from mnmt_eval.runs.engines import choose_engine, find_export
from mnmt_eval.search import LengthPenalty, SamplingConfig, SearchConfig
from mnmt_eval.translate import EngineConfig
from mnmt_model import RunError
from mnmt_model.export import Certificate, conversion
from mnmt_model.runs.load import open_checkpoint


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were exported to."""
    folders: list[Path] = []

    def export_run(run: Path, out: Path, *, checkpoint: Path) -> Certificate:
        folders.append(out)
        return real(run, out, checkpoint=checkpoint)

    real = engines.export_run
    monkeypatch.setattr(engines, "export_run", export_run)
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
        patched.setattr(engines, "version", lambda package: "9.8.7")
        other = find_export(run)
    assert other.parent.name.endswith("-9.8.7")
    assert find_export(run) == folder
    assert len(counted) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "layer"}, "can be exported"),
        ({"num_experts": 4}, "CTranslate2 has no mixtures of experts"),
    ],
)
def test_a_model_that_cannot_be_exported_leaves_nothing(
    tiny_run: Path, changes: dict[str, object], message: str
) -> None:
    run = open_checkpoint(tiny_run)
    model = {**run.record.config["model"], **changes}
    other = replace(run, record=replace(run.record, config={**run.record.config, "model": model}))
    with pytest.raises(RunError, match=message):
        choose_engine(other, SearchConfig(), EngineConfig(name="ctranslate2"))
    assert choose_engine(other, SearchConfig(), EngineConfig()).name == "torch"
    assert not (tiny_run / "exports").exists()


@pytest.mark.parametrize(
    "search",
    [
        SearchConfig(sampling=SamplingConfig()),
        SearchConfig(beam=2, early_stopping="exact"),
        SearchConfig(beam=2, length_penalty=LengthPenalty(kind="gnmt")),
    ],
)
def test_auto_is_torch_where_ctranslate2_cannot_search(tiny_run: Path, search: SearchConfig) -> None:
    assert choose_engine(open_checkpoint(tiny_run), search, EngineConfig()).name == "torch"
    assert not (tiny_run / "exports").exists()


def test_auto_is_ctranslate2_where_the_export_agrees_and_keeps_its_files_only(tiny_run: Path) -> None:
    run = open_checkpoint(tiny_run)
    chosen = choose_engine(run, SearchConfig(beam=4), EngineConfig())
    assert str(chosen).startswith("ctranslate2-")
    assert str(chosen).endswith("-float32")
    assert list((tiny_run / "exports").glob("*/*.safetensors")) == []


def test_an_export_that_disagrees_is_not_used_and_not_made_again(
    tiny_run: Path, counted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "certify", partial(conversion.certify, tolerance=-1.0))
    for message in ("does not agree with", "did not agree with the run; remove it to export again"):
        with pytest.raises(RunError, match=message):
            find_export(open_checkpoint(tiny_run))
    names = [path.name for path in (tiny_run / "exports").iterdir() if path.is_dir()]
    assert [name.rpartition(".")[2] for name in names] == ["failed"]
    messages: list[str] = []
    chosen = choose_engine(
        open_checkpoint(tiny_run), SearchConfig(), EngineConfig(), on_export=messages.append
    )
    assert chosen.name == "torch"
    assert messages[-1].endswith("so torch searches")
    assert len(counted) == 1
