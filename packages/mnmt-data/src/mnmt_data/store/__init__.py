"""The formats on disk: atomic files, token shards, the vocabulary, corpus folders and prepared data."""

from mnmt_data.store.atomic_file import atomic_file, checksum, write_json
from mnmt_data.store.corpus_folder import read_lines
from mnmt_data.store.direction import Direction, TargetTag
from mnmt_data.store.groups import Groups, count_lengths
from mnmt_data.store.json_lines import append_json_lines, read_json, read_json_lines, write_json_lines
from mnmt_data.store.lock import file_lock, is_locked
from mnmt_data.store.prepared import VOCABULARY, PreparedData, open_prepared
from mnmt_data.store.ragged import Ragged, offsets_of
from mnmt_data.store.score_file import ScoreFile, ScoresInfo, score_table, scores_schema
from mnmt_data.store.segment_file import SegmentFile
from mnmt_data.store.segments import SegmentInfo, write_segment
from mnmt_data.store.shards import Shard, segment_path
from mnmt_data.store.vocabulary import EOS, PAD, UNK, Vocabulary, train_vocabulary

__all__ = [
    "EOS",
    "PAD",
    "UNK",
    "VOCABULARY",
    "Direction",
    "Groups",
    "PreparedData",
    "Ragged",
    "ScoreFile",
    "ScoresInfo",
    "SegmentFile",
    "SegmentInfo",
    "Shard",
    "TargetTag",
    "Vocabulary",
    "append_json_lines",
    "atomic_file",
    "checksum",
    "count_lengths",
    "file_lock",
    "is_locked",
    "offsets_of",
    "open_prepared",
    "read_json",
    "read_json_lines",
    "read_lines",
    "score_table",
    "scores_schema",
    "segment_path",
    "train_vocabulary",
    "write_json",
    "write_json_lines",
    "write_segment",
]
