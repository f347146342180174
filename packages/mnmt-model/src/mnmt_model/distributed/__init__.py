"""The processes that train one model, and their parts of tensors."""

from mnmt_model.distributed.shards import local, local_part
from mnmt_model.distributed.world import World, join_world, on_every_rank, on_first_rank, rank_and_size

__all__ = [
    "World",
    "join_world",
    "local",
    "local_part",
    "on_every_rank",
    "on_first_rank",
    "rank_and_size",
]
