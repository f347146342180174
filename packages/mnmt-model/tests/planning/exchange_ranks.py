"""Two processes that hold the experts of a model together: exchange_ranks.py FOLDER.

The first writes the bytes that it sent to the other in a training step of each case, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.multiprocessing import start_processes

from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.experts.ranks import EXPERTS, REPLICAS, ExpertRanks
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack

RANKS = 2
PAIRS, SRC_LEN, TGT_LEN = 6, 13, 11
CONFIG = ModelConfig(encoder_layers=4, decoder_layers=3, d_model=32, d_ff=64, num_experts=4)


@dataclass(frozen=True, kw_only=True)
class Case:
    precision: str = "float32"
    checkpointing: bool = False
    chunks: int = 1


CASES = (Case(), Case(precision="bfloat16"), Case(checkpointing=True), Case(chunks=3))


@contextmanager
def sent_bytes() -> Iterator[list[int]]:
    """What all-to-alls inside send to the other process."""
    sent: list[int] = []
    exchange = distributed.all_to_all_single

    def counted(output: Tensor, sending: Tensor, *args: Any, **options: Any) -> Any:
        sent.append(sending.nbytes * (RANKS - 1) // RANKS)
        return exchange(output, sending, *args, **options)

    distributed.all_to_all_single = counted
    yield sent
    distributed.all_to_all_single = exchange


def step(case: Case, mesh: DeviceMesh) -> int:
    """Bytes sent by the forward and backward pass of one batch."""
    ranks = ExpertRanks(mesh=mesh, chunks=case.chunks)
    model = build_model(CONFIG, 50, dtype=getattr(torch, case.precision), ranks=ranks)
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpointing = case.checkpointing
    src, tgt = (Sentences.from_padded(torch.ones(PAIRS, length).long()) for length in (SRC_LEN, TGT_LEN))
    with sent_bytes() as sent:
        model(src, tgt).objective.backward()
    return sum(sent)


def run(rank: int, folder: str) -> None:
    """One of the processes."""
    torch.set_num_threads(1)
    rendezvous = f"file://{folder}/rendezvous"
    distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (1, RANKS), mesh_dim_names=(REPLICAS, EXPERTS))
    sent = [step(case, mesh) for case in CASES]
    if rank == 0:
        (Path(folder) / "sent.json").write_text(json.dumps(sent), encoding="utf-8")
    distributed.destroy_process_group()


if __name__ == "__main__":
    # Forked, so that torch is loaded once.
    start_processes(run, args=(sys.argv[1],), nprocs=RANKS, start_method="fork")
