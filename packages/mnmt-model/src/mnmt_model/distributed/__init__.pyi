from .shards import local as local
from .shards import local_part as local_part
from .world import World as World
from .world import join_world as join_world
from .world import on_every_rank as on_every_rank
from .world import on_first_rank as on_first_rank
from .world import rank_and_size as rank_and_size
