"""A Hugging Face T5 1.1 as a run that scoring, search and `initial` take."""

from __future__ import annotations

import shutil
from pathlib import Path

from mnmt_data.prepared import VOCABULARY
from mnmt_model.checkpoints import CHECKPOINTS
from mnmt_model.checkpoints.state import MODEL, Progress, State, record_file, write_state
from mnmt_model.checkpoints.tensor_files import write_tensors
from mnmt_model.checkpoints.whole_folder import whole_folder
from mnmt_model.errors import RunError
from mnmt_model.export.hugging_face import SENTENCEPIECE, read_hugging_face
from mnmt_model.runs.provenance import describe, now, write_record
from mnmt_model.runs.run_config import RunPlan
from mnmt_model.train_config import TrainConfig

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
