from .errors import DataError as DataError
from .errors import StudyError as StudyError
from .prepare.config import DataConfig as DataConfig
from .prepare.config import VocabConfig as VocabConfig
from .prepare.pipeline import prepare_study as prepare_study
from .store.prepared import PreparedData as PreparedData
from .store.prepared import open_prepared as open_prepared
from .store.ragged import Ragged as Ragged
from .store.segments import write_segment as write_segment
from .store.shards import Shard as Shard
from .store.vocabulary import Vocabulary as Vocabulary
from .stream.batch import Batch as Batch
from .stream.batch_stream import BatchStream as BatchStream
from .stream.batch_stream import eval_batches as eval_batches
from .stream.hook import BatchHook as BatchHook
from .stream.hook import DrawnPairs as DrawnPairs
from .stream.mixture import Mixture as Mixture
from .stream.mixture import Phase as Phase
from .stream.mixture import Schedule as Schedule
from .stream.mixture import explicit_scalarization as explicit_scalarization
from .stream.prefetch import Share as Share
from .stream.torch_dataset import BatchDataset as BatchDataset
from .study import StudyFile as StudyFile
from .study import read_study as read_study
from .synthetic.config import SyntheticConfig as SyntheticConfig
from .synthetic.corpus import write_synthetic_corpus as write_synthetic_corpus

__version__: str
