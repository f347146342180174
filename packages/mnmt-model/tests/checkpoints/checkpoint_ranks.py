"""Ranks that write or read checkpoints: checkpoint_ranks.py FOLDER ACTION-SIZE…, such as write-2 write-4."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from mnmt_model.checkpoints import Progress, checkpoint, load_model, restore_newest, save
from mnmt_model.checkpoints.named_tensors import model_tensors, optimizer_tensors
from mnmt_model.errors import RunError
from mnmt_model.optim.adafactor import Adafactor

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adafactor": Adafactor}

WRITTEN = {
    2: [(parallel, name) for parallel in ("ddp", "fsdp") for name in OPTIMIZERS],
    4: [
        ("fsdp", "adamw"),
        ("fsdp", "adafactor"),
        ("ddp+experts", "adafactor"),
        ("fsdp+experts", "adamw"),
        ("fsdp+rows", "adafactor"),
    ],
}
"""By the number of processes. Two share out the experts with "ddp+experts", and all with "fsdp+experts"; with
"fsdp+rows" two do, and those with the same experts share out their rows."""

READ = {2: ("ddp", "fsdp", "ddp+experts"), 4: ("fsdp", "ddp+experts", "fsdp+experts", "fsdp+rows")}
"""DDP is the same at 2 processes and at 4."""


def make_model() -> nn.Sequential:
    """Rows divide by 2 and 4 evenly, unevenly, and so that some ranks have none; experts come last."""
    torch.manual_seed(1)
    layers = [nn.Linear(128, 130), nn.Linear(130, 5), nn.Linear(5, 3), nn.LayerNorm(3), nn.Linear(3, 1)]
    experts = {"wi": nn.Parameter(torch.randn(6, 128, 130)), "wo": nn.Parameter(torch.randn(4, 5, 3))}
    return nn.Sequential(*layers, nn.ParameterDict(experts))


def make(parallel: str, optimizer: str) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    """The module to call, the one whose state is saved, and its optimiser."""
    model = make_model()
    called: nn.Module = model[:-1]
    share_out(model[-1], parallel)
    if parallel.startswith("ddp"):
        called = DistributedDataParallel(called)
    else:
        mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
        for layer in called:
            fully_shard(layer, mesh=mesh)
        fully_shard(called, mesh=mesh)
    return called, model, OPTIMIZERS[optimizer](model.parameters(), lr=0.01)


def share_out(experts: nn.ParameterDict, parallel: str) -> None:
    """Put the experts where they are trained: on meshes of (replicas, experts) if ranks share them out."""
    size = distributed.get_world_size()
    replicas = size // 2, 2
    shapes = {"fsdp": (size,), "ddp+experts": replicas, "fsdp+experts": (1, size), "fsdp+rows": replicas}
    if parallel in shapes:
        mesh = init_device_mesh("cpu", shapes[parallel])
        replicas_hold = Shard(1) if parallel == "fsdp+rows" else Replicate()
        placements = [replicas_hold] * (mesh.ndim - 1) + [Shard(0)]
        for name, parameter in experts.items():
            experts[name] = nn.Parameter(distribute_tensor(parameter.detach(), mesh, placements))


def train_step(called: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    torch.manual_seed(distributed.get_rank())
    called(torch.randn(4, 128)).square().sum().backward()
    torch.manual_seed(7)
    for parameter in optimizer.param_groups[0]["params"]:
        if parameter.dim() == 3:
            grad = torch.randn(parameter.shape)
            if isinstance(parameter, DTensor):
                grad = distribute_tensor(grad, parameter.device_mesh, parameter.placements)
            parameter.grad = grad
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def gather(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """All tensors, whole, by torch's own means."""
    tensors = model_tensors(model) | optimizer_tensors(model, optimizer)
    return {
        name: (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).clone()
        for name, tensor in tensors.items()
    }


def keep(tensors: dict[str, torch.Tensor], path: Path) -> None:
    if distributed.get_rank() == 0:
        save_file(tensors, path)
    distributed.barrier()


def require_equal(result: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], what: str) -> None:
    assert result.keys() == wanted.keys(), what
    for name in wanted:
        assert torch.equal(result[name], wanted[name]), f"{what}: {name}"


def write(folder: Path) -> None:
    """Saves after two steps; beside it, all tensors then and a step later."""
    size = distributed.get_world_size()
    for parallel, name in WRITTEN[size]:
        called, model, optimizer = make(parallel, name)
        for _ in range(2):
            train_step(called, optimizer)
        run = folder / f"{parallel}-{size}-{name}"
        save(run, model, optimizer, Progress(step=2, tokens=9, flops=8, stream={"a": 1}), keep=1)
        keep(gather(model, optimizer), run / "saved.safetensors")
        # After its first step DDP sums in another order, so it starts afresh as a resumed run does.
        ddp = parallel.startswith("ddp")
        train_step(DistributedDataParallel(model[:-1]) if ddp else called, optimizer)
        keep(gather(model, optimizer), run / "later.safetensors")


def read(folder: Path) -> None:
    """Every run, in every parallel way; those written so take the later step to the same tensors."""
    world = distributed.get_world_size()
    for run in sorted(folder.iterdir()):
        written, size, name = run.name.split("-")
        for parallel in READ[world]:
            called, model, optimizer = make(parallel, name)
            assert restore_newest(run, model, optimizer) is not None
            require_equal(gather(model, optimizer), load_file(run / "saved.safetensors"), run.name)
            if (written, int(size)) == (parallel, world):
                train_step(called, optimizer)
                require_equal(gather(model, optimizer), load_file(run / "later.safetensors"), run.name)
            load_model(run / "step-00000002", model)


def trouble(folder: Path) -> None:
    """Prints what a full disk says, and the step gone on from when a file has changed."""
    fail(folder / "full")
    fall_back(folder / "changed")


def fail(folder: Path) -> None:
    """The last rank's disk is full at the second save."""
    _, model, optimizer = make("fsdp", "adamw")
    save(folder, model, optimizer, Progress(step=1, tokens=0, flops=0, stream={}), keep=2)

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_tensors = checkpoint.write_tensors
    if distributed.get_rank() == distributed.get_world_size() - 1:
        checkpoint.write_tensors = full
    try:
        save(folder, model, optimizer, Progress(step=2, tokens=0, flops=0, stream={}), keep=2)
    except RunError as error:
        print(error)
    checkpoint.write_tensors = write_tensors


def fall_back(folder: Path) -> None:
    """The last file of the newest checkpoint has changed."""
    called, model, optimizer = make("fsdp", "adamw")
    for step in (1, 2):
        train_step(called, optimizer)
        save(folder, model, optimizer, Progress(step=step, tokens=0, flops=0, stream={}), keep=2)
    distributed.barrier()
    if distributed.get_rank() == 0:
        last = sorted((folder / "step-00000002").glob("model-*"))[-1]
        content = last.read_bytes()
        last.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    progress = restore_newest(folder, model, optimizer)
    assert progress is not None
    print(progress.step)


def run(rank: int, action: str, size: int, folder: Path) -> None:
    """One rank, whose output and errors go to files beside the folder."""
    for descriptor, name in ((1, "out"), (2, "err")):
        file = folder.with_name(f"{folder.name}-{action}-{size}-{rank}.{name}")
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    torch.set_num_threads(1)
    rendezvous = folder.with_name(f"{folder.name}-{action}-{size}.rendezvous")
    distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    {"write": write, "read": read, "trouble": trouble}[action](folder)
    distributed.destroy_process_group()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for job in sys.argv[2:]:
        action, _, size = job.partition("-")
        # Forked, so that torch is loaded once.
        start_processes(run, args=(action, int(size), folder), nprocs=int(size), start_method="fork")
