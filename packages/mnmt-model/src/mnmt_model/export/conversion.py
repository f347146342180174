"""A trained run as a folder for transformers and CTranslate2, and a Hugging Face T5 1.1 as a run."""

from __future__ import annotations

import shutil
from pathlib import Path

from mnmt_data.store import VOCABULARY, write_json
from mnmt_model.checkpoints import CHECKPOINTS, load_model, newest
from mnmt_model.checkpoints.atomic_folder import whole_folder
from mnmt_model.checkpoints.state import MODEL, Progress, State, record_file, write_state
from mnmt_model.checkpoints.tensor_files import write_tensors
from mnmt_model.errors import RunError
from mnmt_model.export.certificate import Certificate, certificate_json, certificate_page
from mnmt_model.export.comparison import PAIRS, certify
from mnmt_model.export.engines import convert_to_ctranslate2
from mnmt_model.export.hugging_face import SENTENCEPIECE, export_hugging_face, read_hugging_face
from mnmt_model.export.t5_layout import check_exportable
from mnmt_model.runs.provenance import describe, now, write_record
from mnmt_model.runs.run_config import RunPlan
from mnmt_model.runs.run_data import open_data
from mnmt_model.runs.run_record import read_run
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.model_config import ModelConfig

CTRANSLATE2_FOLDER = "ctranslate2"
FAILED = ".failed"


def export_run(
    run: Path,
    out: Path,
    *,
    checkpoint: Path | None = None,
    with_ctranslate2: bool = True,
    pairs: int = PAIRS,
) -> Certificate:
    """Write a run's model for transformers, and for CTranslate2, with a certificate that they agree.

    `out` appears when all agree. Otherwise what was written stays in OUT.failed, with its certificate.

    Args:
        run: Folder of the run.
        out: Folder to write, which must not be there; the CTranslate2 model goes into its `ctranslate2`.
        checkpoint: A checkpoint or average of the run; its newest checkpoint by default.
        with_ctranslate2: Whether to convert to CTranslate2 too.
        pairs: About how many test pairs to compare.

    Raises:
        RunError: If the model is not a T5 1.1, an engine disagrees or is not installed, or `out` is there.
        DataError: If the run's prepared data are gone.
    """
    if pairs < 1:
        raise RunError(f"--pairs must be at least 1, but is {pairs}")
    if out.exists():
        raise RunError(f"{out}: is there already; remove it, or name another folder")
    record = read_run(run)
    config, vocab_size = ModelConfig(**record["config"]["model"]), record["vocab_size"]
    check_exportable(config)
    data = open_data(run)
    model = build_model(config, vocab_size)
    load_model(newest(checkpoint or run), model)
    written = out.with_name(out.name + FAILED)
    shutil.rmtree(written, ignore_errors=True)
    export_hugging_face(config, model.state_dict(), data.folder / VOCABULARY, written)
    converted = written / CTRANSLATE2_FOLDER if with_ctranslate2 else None
    if converted is not None:
        convert_to_ctranslate2(written, converted)
    certificate = certify(model, written, data, ctranslate2=converted, pairs=pairs)
    _write(certificate, written)
    if certificate.failures:
        raise RunError(f"{written}: does not agree with {run}: {'; '.join(certificate.failures[:3])}")
    written.rename(out)
    return certificate


def _write(certificate: Certificate, folder: Path) -> None:
    content = certificate_json(certificate)
    write_json(folder / "certificate.json", content)
    (folder / "certificate.md").write_text(certificate_page(content), encoding="utf-8")


STUDY = "imported"
DATA = "data"
"""Folder in the run that holds its vocabulary."""


def import_run(folder: Path, out: Path) -> Path:
    """Write a Hugging Face T5 1.1 as a finished run of no steps, for `initial` and for continued training.

    Its checkpoint is step 0. A `spiece.model` in `folder` becomes the vocabulary `out/data/vocab.model`, with
    which data for the model must be prepared (`path` in `[data.vocab]`).

    Args:
        folder: Config.json with its safetensors.
        out: Folder of the run, which must not be there.

    Returns:
        The checkpoint.

    Raises:
        RunError: If the model is not one of ours, or `out` is there.
    """
    if out.exists():
        raise RunError(f"{out}: is there already; remove it, or name another folder")
    config, vocab_size, weights = read_hugging_face(folder)
    with whole_folder(out, needed=sum(weight.nbytes for weight in weights.values())) as partial:
        (partial / DATA).mkdir()
        if (folder / SENTENCEPIECE).is_file():
            shutil.copyfile(folder / SENTENCEPIECE, partial / DATA / VOCABULARY)
        checkpoint = partial / CHECKPOINTS / "step-00000000"
        checkpoint.mkdir(parents=True)
        name = f"{MODEL}.safetensors"
        write_tensors(checkpoint / name, {key: (weight, 0) for key, weight in weights.items()})
        progress = Progress(step=0, tokens=0, flops=0, stream={})
        write_state(checkpoint, State(progress=progress, files={name: record_file(checkpoint / name)}))
        plan = RunPlan(
            name=out.name,
            study=STUDY,
            role="held-out",
            model=config,
            train=TrainConfig(),
            mixture={},
            seed=0,
            data=partial / DATA,
        )
        record = describe(plan, partial, vocab_size=vocab_size, data=None)
        write_record(partial, record, status="finished", finished=now())
    return out / CHECKPOINTS / checkpoint.name
