"""What a model takes before it is trained: its parameters, FLOPs, memory and time; and presets.

Exported here is what needs no torch.
"""

from mnmt_model.planning.flops import DecodingFlops, Flops, decoding_flops, pair_flops, training_flops
from mnmt_model.planning.parameters import ParameterCount, count_parameters
from mnmt_model.planning.presets import PRESET_NAMES, PRESETS, Preset, preset
from mnmt_model.planning.workload import PlanConfig, Workload

__all__ = [
    "PRESETS",
    "PRESET_NAMES",
    "DecodingFlops",
    "Flops",
    "ParameterCount",
    "PlanConfig",
    "Preset",
    "Workload",
    "count_parameters",
    "decoding_flops",
    "pair_flops",
    "preset",
    "training_flops",
]
