from .changes import check_prepared as check_prepared
from .changes import recorded_changes as recorded_changes
from .config import DataConfig as DataConfig
from .config import VocabConfig as VocabConfig
from .pipeline import prepare_study as prepare_study
