from .flops import training_flops as training_flops
from .parameters import ParameterCount as ParameterCount
from .parameters import count_parameters as count_parameters
from .presets import PRESET_NAMES as PRESET_NAMES
from .presets import PRESETS as PRESETS
from .presets import Preset as Preset
from .presets import preset as preset
