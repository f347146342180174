"""A checkpoint of one run as the beginning of another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mnmt_model.checkpoints.atomic_folder import atomic_folder
from mnmt_model.checkpoints.state import check_files, files_of
from mnmt_model.distributed.world import on_first_rank


def link_checkpoint(checkpoint: Path, folder: Path) -> Path:
    """Put a checkpoint into another folder of checkpoints too; every rank calls this.

    The files are hard links, which take no room and outlive the first ones, or copies where links cannot be.

    Returns:
        The checkpoint in `folder`.

    Raises:
        RunError: On every rank, if the checkpoint is missing or has changed since it was written, or the disk
            has no room or cannot be written.
    """
    on_first_rank(lambda: check_files(files_of(checkpoint)))
    final = folder / checkpoint.name
    with atomic_folder(final, needed=0) as partial:
        on_first_rank(lambda: _link_files(checkpoint, partial))
    return final


def _link_files(source: Path, target: Path) -> None:
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:
            shutil.copy2(path, target / path.name)
