"""Export a trained run for transformers and CTranslate2."""

from __future__ import annotations

import shutil
from pathlib import Path

from mnmt_data.store import VOCABULARY, write_json
from mnmt_model.checkpoints.checkpoint import load_model
from mnmt_model.checkpoints.checkpoint_folders import CHECKPOINTS, newest, step_of
from mnmt_model.errors import RunError
from mnmt_model.export.certificate import Certificate, certificate_json
from mnmt_model.export.comparison import PAIRS, certify
from mnmt_model.export.engines import convert_to_ctranslate2
from mnmt_model.export.hugging_face import export_hugging_face
from mnmt_model.export.layouts import check_exportable
from mnmt_model.export.model_card import model_card
from mnmt_model.runs.run_data import open_data
from mnmt_model.runs.run_record import Eval, read_evals, read_run
from mnmt_model.training.evaluator import DEV
from mnmt_model.transformer.build import build_model

CTRANSLATE2_FOLDER = "ctranslate2"
FAILED = ".failed"


def export_run(run: Path, out: Path, *, checkpoint: Path | None = None, pairs: int = PAIRS) -> Certificate:
    """Write a run's model for transformers and CTranslate2, with a certificate that they agree with it.

    A mixture of experts is written only for transformers, since CTranslate2 does not support it. `out`
    appears if all agree. Otherwise the export stays in OUT.failed, with its certificate.

    Args:
        run: Folder of the run.
        out: Folder to write, which must not exist; the CTranslate2 model goes into its `ctranslate2`.
        checkpoint: A checkpoint or average of the run; its newest checkpoint by default.
        pairs: Approximate number of test pairs to compare.

    Raises:
        RunError: If transformers has no such architecture, an engine disagrees or is not installed, or `out`
            exists.
        DataError: If the run's prepared data are missing.
    """
    if pairs < 1:
        raise RunError(f"`pairs` must be at least 1, but is {pairs}")
    _check_absent(out)
    record = read_run(run)
    model = build_model(record.model, record.vocab_size)
    exported = newest(checkpoint or run)
    load_model(exported, model)
    check_exportable(record.model, model.state_dict())
    data = open_data(run)
    unproved = out.with_name(out.name + FAILED)
    shutil.rmtree(unproved, ignore_errors=True)
    export_hugging_face(record.model, model.state_dict(), data.folder / VOCABULARY, unproved)
    ctranslate2 = None if record.model.num_experts else unproved / CTRANSLATE2_FOLDER
    if ctranslate2 is not None:
        convert_to_ctranslate2(unproved, ctranslate2)
    certificate = certify(model, unproved, data, ctranslate2=ctranslate2, pairs=pairs)
    content = certificate_json(certificate)
    write_json(unproved / "certificate.json", content)
    tag = data.vocab.target_tag
    card = model_card(record, _measured(run, exported), content, name=out.name, tag=tag)
    (unproved / "README.md").write_text(card, encoding="utf-8")
    if certificate.failures:
        raise RunError(f"{unproved}: does not agree with {run}: {'; '.join(certificate.failures[:3])}")
    unproved.rename(out)
    return certificate


def _check_absent(out: Path) -> None:
    if out.exists():
        raise RunError(f"{out}: exists already; remove it, or name another folder")


def _measured(run: Path, checkpoint: Path) -> list[Eval]:
    """Return the measurements of a checkpoint of training on test sets; none of an average."""
    if checkpoint.parent.name != CHECKPOINTS:
        return []
    last = {(each.testset, each.task, each.metric): each for each in read_evals(run)}
    return [each for each in last.values() if each.step == step_of(checkpoint) and each.testset != DEV]
