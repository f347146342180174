"""Published models by name."""

from __future__ import annotations

from mnmt_model.errors import RunError
from mnmt_model.planning.presets.definition import Preset
from mnmt_model.planning.presets.fernandes import FERNANDES
from mnmt_model.planning.presets.gshard import GSHARD
from mnmt_model.planning.presets.m4 import M4
from mnmt_model.planning.presets.zhang import ZHANG_FAMILIES, zhang_preset

PRESETS: dict[str, Preset] = {**FERNANDES, **GSHARD, **M4}
"""The presets with names of their own."""

PRESET_NAMES = (*PRESETS, *ZHANG_FAMILIES)
"""Every name, and the forms of the names of those that are made from them."""


def preset(name: str) -> Preset:
    """The model called `name`.

    Raises:
        RunError: If there is none; the message lists the names there are.
    """
    found = PRESETS.get(name) or zhang_preset(name)
    if found is None:
        raise RunError(f"there is no preset {name!r}; the presets are {', '.join(PRESET_NAMES)}")
    return found


__all__ = ["PRESETS", "PRESET_NAMES", "Preset", "preset"]
