"""Parallel corpora to exactly weighted batches, any of which can be asked for."""

from mnmt_data.errors import DataError, StudyError
from mnmt_data.prepare import prepare_study
from mnmt_data.prepare.config import DataConfig, VocabConfig
from mnmt_data.store.prepared import Prepared, open_prepared
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import write_segment
from mnmt_data.store.shards import Shard
from mnmt_data.store.vocabulary import Vocabulary
from mnmt_data.stream.batch_stream import Batch, BatchStream, eval_batches
from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit, moving
from mnmt_data.stream.prefetch import Share
from mnmt_data.study import StudyFile, read_study
from mnmt_data.synthetic import SyntheticConfig, write_synthetic_corpus

__all__ = [
    "Batch",
    "BatchStream",
    "DataConfig",
    "DataError",
    "Mixture",
    "Phase",
    "Prepared",
    "Ragged",
    "Schedule",
    "Shard",
    "Share",
    "StudyError",
    "StudyFile",
    "SyntheticConfig",
    "VocabConfig",
    "Vocabulary",
    "eval_batches",
    "explicit",
    "moving",
    "open_prepared",
    "prepare_study",
    "read_study",
    "write_segment",
    "write_synthetic_corpus",
]
