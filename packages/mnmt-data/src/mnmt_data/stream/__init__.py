"""Endless training batches from several tasks in exact proportion, and what a run read of them."""

from mnmt_data.stream.batch import Batch, Corpus, Pairs
from mnmt_data.stream.batch_reader import BatchReader, StepBatch
from mnmt_data.stream.batch_sampler import BatchSampler
from mnmt_data.stream.batch_stream import BatchStream, eval_batches
from mnmt_data.stream.bucketing import batch_by_tokens, check_not_empty, split_evenly
from mnmt_data.stream.mixing import MixingConfig, SelectionConfig, WeightChange, open_stream, order_path
from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit_scalarization, linear_schedule
from mnmt_data.stream.prefetch import WHOLE, PrefetchedWindow, Share, prefetch_window
from mnmt_data.stream.replay import audit, open_recorded_stream, read_recorded_stream
from mnmt_data.stream.selection import area_under_curve, pair_scores
from mnmt_data.stream.task_sampler import TaskSampler

__all__ = [
    "WHOLE",
    "Batch",
    "BatchReader",
    "BatchSampler",
    "BatchStream",
    "Corpus",
    "MixingConfig",
    "Mixture",
    "Pairs",
    "Phase",
    "PrefetchedWindow",
    "Schedule",
    "SelectionConfig",
    "Share",
    "StepBatch",
    "TaskSampler",
    "WeightChange",
    "area_under_curve",
    "audit",
    "batch_by_tokens",
    "check_not_empty",
    "eval_batches",
    "explicit_scalarization",
    "linear_schedule",
    "open_recorded_stream",
    "open_stream",
    "order_path",
    "pair_scores",
    "prefetch_window",
    "read_recorded_stream",
    "split_evenly",
]
