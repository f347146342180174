"""Endless training batches from several tasks in exact proportion."""

from mnmt_data.stream.batch import Batch, Corpus, Pairs
from mnmt_data.stream.batch_reader import BatchReader, StepBatch
from mnmt_data.stream.batch_sampler import BatchSampler
from mnmt_data.stream.batch_stream import BatchStream, eval_batches
from mnmt_data.stream.bucketing import batch_by_tokens, check_not_empty, split_evenly
from mnmt_data.stream.hook import BatchHook, DrawnPairs
from mnmt_data.stream.mixing import MixingConfig, WeightPhase, open_stream, order_path
from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit_scalarization
from mnmt_data.stream.prefetch import WHOLE, PrefetchedWindow, Share, prefetch_window
from mnmt_data.stream.selection import pair_scores
from mnmt_data.stream.task_sampler import TaskSampler

__all__ = [
    "WHOLE",
    "Batch",
    "BatchHook",
    "BatchReader",
    "BatchSampler",
    "BatchStream",
    "Corpus",
    "DrawnPairs",
    "MixingConfig",
    "Mixture",
    "Pairs",
    "Phase",
    "PrefetchedWindow",
    "Schedule",
    "Share",
    "StepBatch",
    "TaskSampler",
    "WeightPhase",
    "batch_by_tokens",
    "check_not_empty",
    "eval_batches",
    "explicit_scalarization",
    "open_stream",
    "order_path",
    "pair_scores",
    "prefetch_window",
    "split_evenly",
]
