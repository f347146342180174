"""Four processes that train together: traffic_ranks.py FOLDER.

The first writes the bytes that collectives were given in a training step of each case, and the FLOPs that it
computed, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import distributed
from torch.multiprocessing import start_processes
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from mnmt_model.distributed.world import World
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.parallel import (
    average_expert_gradients,
    expert_ranks,
    make_trainable,
    no_gradient_sync,
)
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.experts.routes import RoutingContext
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.sentences import Sentences

RANKS, PAIRS, LENGTH, VOCAB_SIZE = 4, 3, 8, 64
DENSE = ModelConfig(encoder_layers=2, decoder_layers=3, d_model=32, d_ff=64)
TOP_ONLY = replace(DENSE, architecture="prefix-lm-toponly", encoder_layers=None)
MIXTURE = replace(DENSE, num_experts=4)
ROOMY = replace(MIXTURE, capacity_factor=4.0)
DROPLESS = replace(MIXTURE, capacity_factor=0.0, expert_feed_forward="gated-silu")
CHOOSING = replace(MIXTURE, expert_choice=True)
PLAIN = TrainConfig(batch_tokens=RANKS * PAIRS * 2 * LENGTH)
IN_PARTS = replace(PLAIN, accumulation=2, batch_tokens=2 * PLAIN.batch_tokens)
FSDP = replace(PLAIN, parallel="fsdp")
CASES = (
    (DENSE, PLAIN),
    (DENSE, IN_PARTS),
    (DENSE, FSDP),
    (DENSE, replace(IN_PARTS, parallel="fsdp")),
    (DENSE, replace(FSDP, precision="bfloat16")),
    (DENSE, replace(FSDP, activation_checkpointing=True)),
    (TOP_ONLY, FSDP),
    (MIXTURE, PLAIN),
    (MIXTURE, FSDP),
    (MIXTURE, replace(PLAIN, expert_parallel=2)),
    (MIXTURE, replace(FSDP, expert_parallel=2)),
    (MIXTURE, replace(IN_PARTS, expert_parallel=4)),
    (MIXTURE, replace(PLAIN, expert_parallel=4, precision="bfloat16", exchange_chunks=3)),
    (MIXTURE, replace(PLAIN, expert_parallel=4, activation_checkpointing=True)),
    (ROOMY, replace(PLAIN, expert_parallel=4)),
    (ROOMY, replace(PLAIN, expert_parallel=4, precision="bfloat16", activation_checkpointing=True)),
    (ROOMY, replace(PLAIN, expert_parallel=4, exchange_chunks=2)),
    (DROPLESS, replace(PLAIN, expert_parallel=4)),
    (CHOOSING, replace(PLAIN, expert_parallel=4)),
)


class Sizes(TorchDispatchMode):
    """Bytes of the whole tensors that collectives reduce, gather and scatter, by the collective."""

    ARGUMENTS: ClassVar = {
        "allreduce_": 0,
        "_allgather_base_": 0,
        "_reduce_scatter_base_": 1,
        "alltoall_base_": 1,
    }
    """{collective: its argument that is the whole}."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if func.namespace == "c10d" and name in self.ARGUMENTS:
            given = args[self.ARGUMENTS[name]]
            for tensor in given if isinstance(given, list) else [given]:
                self.sizes[name] += tensor.nbytes
        return func(*args, **(kwargs or {}))


def step(config: ModelConfig, train: TrainConfig, world: World) -> dict[str, Any]:
    torch.manual_seed(0)
    model = build_model(
        config, VOCAB_SIZE, dtype=getattr(torch, train.precision), ranks=expert_ranks(config, train, world)
    )
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    trainable = make_trainable(model, train, world).train()
    src = tgt = Sentences.from_padded(torch.ones(PAIRS, LENGTH).long())
    # Experts are chosen evenly.
    routing = replace(RoutingContext.default(PAIRS, world.device), uniform=True)
    with Sizes() as counted, FlopCounterMode(display=False) as flops:
        for part in range(train.accumulation):
            last = part == train.accumulation - 1
            with nullcontext() if last else no_gradient_sync(trainable):
                trainable(src, tgt, routing=routing).objective.backward()
        average_expert_gradients(model, world)
    return {"sizes": dict(counted.sizes), "flops": flops.get_total_flops()}


def run(rank: int, folder: str) -> None:
    """One of the processes."""
    torch.set_num_threads(1)
    rendezvous = f"file://{folder}/rendezvous"
    distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=RANKS)
    world = World(rank=rank, size=RANKS)
    counts = [step(config, train, world) for config, train in CASES]
    if rank == 0:
        (Path(folder) / "traffic.json").write_text(json.dumps(counts), encoding="utf-8")
    distributed.destroy_process_group()


if __name__ == "__main__":
    start_processes(run, args=(sys.argv[1],), nprocs=RANKS, start_method="fork")
