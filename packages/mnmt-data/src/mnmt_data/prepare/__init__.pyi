from .config import DataConfig as DataConfig
from .config import VocabConfig as VocabConfig
from .pipeline import prepare_study as prepare_study
