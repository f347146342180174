from .errors import EvalError as EvalError
from .metrics.config import BleurtConfig as BleurtConfig
from .metrics.config import LanguageConfig as LanguageConfig
from .metrics.config import MetricConfig as MetricConfig
from .metrics.protocol import Metric as Metric
from .metrics.protocol import Score as Score
from .metrics.registry import METRICS as METRICS
from .metrics.registry import metric as metric
from .metrics.resampling import ConfidenceInterval as ConfidenceInterval
from .metrics.resampling import bootstrap as bootstrap
from .metrics.significance import PairedTest as PairedTest
from .metrics.significance import paired_permutation as paired_permutation
from .runs.run_translator import RunTranslator as RunTranslator
from .runs.run_translator import open_translator as open_translator
from .runs.trained_run import TrainedRun as TrainedRun
from .runs.trained_run import open_run as open_run
from .search.config import LengthPenalty as LengthPenalty
from .search.config import MaxLength as MaxLength
from .search.config import SamplingConfig as SamplingConfig
from .search.config import SearchConfig as SearchConfig
from .search.hypotheses import Hypothesis as Hypothesis
from .search.protocol import FlatSearchModel as FlatSearchModel
from .search.protocol import SearchModel as SearchModel
from .translate.lines import SourceLine as SourceLine
from .translate.translation import Translation as Translation
from .translate.translator import Translator as Translator

__version__: str
