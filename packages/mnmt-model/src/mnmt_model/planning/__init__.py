"""Parameters, training FLOPs and least memory of a model, in closed form, and published models by name."""

from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import ParameterCount, count_parameters
from mnmt_model.planning.presets import PRESET_NAMES, PRESETS, Preset, preset

__all__ = [
    "PRESETS",
    "PRESET_NAMES",
    "ParameterCount",
    "Preset",
    "count_parameters",
    "preset",
    "training_flops",
]
