"""Checkpoints: folders of safetensors that appear complete or not at all, and are verified by checksums."""

from mnmt_model.checkpoints.checkpoint import load_model, restore, restore_newest, save
from mnmt_model.checkpoints.checkpoint_folders import CHECKPOINTS, find_checkpoints, newest
from mnmt_model.checkpoints.state import Progress, read_progress, weights_checksum

__all__ = [
    "CHECKPOINTS",
    "Progress",
    "find_checkpoints",
    "load_model",
    "newest",
    "read_progress",
    "restore",
    "restore_newest",
    "save",
    "weights_checksum",
]
