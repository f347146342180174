"""Checkpoints: folders of safetensors that appear complete or not at all, and are verified by checksums."""

from mnmt_model.checkpoints.checkpoint import (
    link_checkpoint,
    load_model,
    remove_old,
    restore,
    restore_newest,
    save,
)
from mnmt_model.checkpoints.checkpoint_folders import (
    CHECKPOINTS,
    checkpoint_name,
    find_checkpoints,
    newest,
    step_of,
)
from mnmt_model.checkpoints.state import Progress, read_progress, weights_checksum

__all__ = [
    "CHECKPOINTS",
    "Progress",
    "checkpoint_name",
    "find_checkpoints",
    "link_checkpoint",
    "load_model",
    "newest",
    "read_progress",
    "remove_old",
    "restore",
    "restore_newest",
    "save",
    "step_of",
    "weights_checksum",
]
