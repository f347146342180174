"""Optimisers of sharded parameters; this file, run as a script, starts the ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.multiprocessing import start_processes
from torch.optim import Optimizer

from mnmt_model import TrainConfig
from mnmt_model.optim import adafactor
from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.optim.optimizer import clip_gradients, make_optimizer

pytestmark = pytest.mark.slow
SHAPES = {
    "factored": (131, 129),
    "wide": (128, 200),
    "narrow": (130, 5),
    "vector": (7,),
    "short": (3, 4),
    "experts": (4, 129, 130),
    "few_experts": (3, 4, 3),
}
"""At 4 ranks the last has nothing of the smallest two, which are factored where `MIN_FACTORED` is 3."""

EXPERT_MESHES = {"1x4": (1, 4), "2x2": (2, 2), "4x1": (4, 1)}
"""Replicas and ranks that share out the experts of each; beside the first, other weights are sharded too."""


class Weights(nn.Module):
    """Parameters of `SHAPES`, the same on every rank."""

    def __init__(self) -> None:
        super().__init__()
        for seed, (name, shape) in enumerate(SHAPES.items()):
            weight = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
            self.register_parameter(name, nn.Parameter(weight * 0.1**seed))


def set_gradients(model: nn.Module, step: int) -> None:
    for seed, parameter in enumerate(model.parameters()):
        grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(100 * step + seed))
        grad = grad.cumsum(dim=0) / step
        if isinstance(parameter, DTensor):
            grad = distribute_tensor(grad, parameter.device_mesh, parameter.placements)
        parameter.grad = grad


def train(
    model: nn.Module, optimizer: Optimizer, steps: range, *, clip_norm: float = 0.0
) -> dict[str, Tensor]:
    """The weights after `steps`, and the norm of the last gradients."""
    norm = torch.zeros(())
    for step in steps:
        set_gradients(model, step)
        norm = clip_gradients(model.parameters(), clip_norm)
        optimizer.step()
    weights = {name: full(parameter.detach()) for name, parameter in model.named_parameters()}
    return weights | {"norm": norm}


def full(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()


def sharded(mesh: DeviceMesh | None, experts: DeviceMesh | None = None, *, by_rows: bool = False) -> Weights:
    """The weights on `mesh`, those of experts on a mesh of their own if there is one.

    `by_rows`: replicas share out the rows of each expert.
    """
    model = Weights()
    if experts is not None:
        for name in ("experts", "few_experts"):
            placements = [Shard(1) if by_rows else Replicate(), Shard(0)]
            shared_out = distribute_tensor(model.get_parameter(name).detach(), experts, placements)
            model.register_parameter(name, nn.Parameter(shared_out))
    if mesh is not None:
        apart = {parameter for parameter in model.parameters() if isinstance(parameter, DTensor)}
        fully_shard(model, mesh=mesh, ignored_params=apart)
    return model


def trained_with_adafactor(model: Weights) -> dict[str, Tensor]:
    return train(model, Adafactor(model.parameters(), lr=0.05), range(1, 5))


def trained_with_adamw(model: Weights) -> dict[str, Tensor]:
    config = TrainConfig(optimizer="adamw", learning_rate=0.05, weight_decay=0.1)
    return train(model, make_optimizer(model, config), range(1, 5), clip_norm=0.5)


def trained_with_all_factored(model: Weights) -> dict[str, Tensor]:
    before = adafactor.MIN_FACTORED
    adafactor.MIN_FACTORED = 3
    try:
        return trained_with_adafactor(model)
    finally:
        adafactor.MIN_FACTORED = before


TRAININGS = {
    "adafactor": trained_with_adafactor,
    "all-factored": trained_with_all_factored,
    "adamw": trained_with_adamw,
}


def trained_with_experts(mesh: DeviceMesh) -> dict[str, dict[str, dict[str, Tensor]]]:
    """{expert mesh: {training: the weights}}."""
    results = {}
    for name, shape in EXPERT_MESHES.items():
        experts = init_device_mesh("cpu", shape, mesh_dim_names=("replicas", "experts"))
        dense = mesh if name == "1x4" else None
        results[name] = {kind: run(sharded(dense, experts)) for kind, run in TRAININGS.items()}
        results[name]["communication"] = communication(sharded(dense, experts))
        if name == "2x2":
            cut = {kind: run(sharded(dense, experts, by_rows=True)) for kind, run in TRAININGS.items()}
            cut["communication"] = communication(sharded(dense, experts, by_rows=True))
            results["2x2 by rows"] = cut
    return results


def save_after_three_steps(mesh: DeviceMesh, folder: Path) -> None:
    model = sharded(mesh)
    optimizer = Adafactor(model.parameters(), lr=0.05)
    train(model, optimizer, range(1, 4))
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder / "checkpoint")


def resumed(mesh: DeviceMesh | None, folder: Path) -> dict[str, Tensor]:
    model = sharded(mesh)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    optimizer = Adafactor(model.parameters(), lr=0.05)
    weights, state = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=folder / "checkpoint")
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    return train(model, optimizer, range(4, 5))


def communication(model: Weights) -> dict[str, Any]:
    """How often ranks communicate to clip and in one step of Adafactor, and the norm that each finds."""
    optimizer = Adafactor(model.parameters(), lr=0.05)
    set_gradients(model, 1)
    with CommDebugMode() as clipping:
        norm = clip_gradients(model.parameters(), 0.1)
    with CommDebugMode() as stepping:
        optimizer.step()
    norms = [0.0] * dist.get_world_size()
    dist.all_gather_object(norms, norm.item())
    counts = int(clipping.get_total_counts()), int(stepping.get_total_counts())
    return {"counts": counts, "norms": norms}


def refusal_of_columns(mesh: DeviceMesh) -> str:
    """What Adafactor says to a matrix sharded by its columns."""
    with pytest.raises(ValueError, match="sharded") as caught:
        Adafactor([nn.Parameter(distribute_tensor(torch.ones(4, 4), mesh, [Shard(1)]))], lr=0.05)
    return str(caught.value)


def work(rank: int, world: int, folder: Path) -> None:
    """What one rank does; the first writes the results of all."""
    torch.set_num_threads(1)
    rendezvous = (folder / f"rendezvous-{world}").as_uri()
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    results: dict[str, Any] = {
        "communication": communication(sharded(mesh)),
        "refusal": refusal_of_columns(mesh),
    }
    results |= {kind: run(sharded(mesh)) for kind, run in TRAININGS.items()}
    if world == 2:
        save_after_three_steps(mesh, folder)
    else:
        hybrid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        results["hybrid"] = {kind: run(sharded(hybrid)) for kind, run in TRAININGS.items()}
        results["experts"] = trained_with_experts(mesh)
        results["resumed"] = resumed(mesh, folder)
    if rank == 0:
        torch.save(results, folder / f"results-{world}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of 2 ranks, which leave a checkpoint, and of 4, which go on from it."""
    folder = tmp_path_factory.mktemp("ranks")
    ended = subprocess.run(
        [sys.executable, __file__, str(folder)], check=False, capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def two(folder: Path) -> dict[str, Any]:
    """Results of 2 ranks."""
    results: dict[str, Any] = torch.load(folder / "results-2.pt")
    return results


@pytest.fixture(scope="module")
def four(folder: Path) -> dict[str, Any]:
    """Results of 4 ranks."""
    results: dict[str, Any] = torch.load(folder / "results-4.pt")
    return results


def assert_alike(ours: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name, value in expected.items():
        torch.testing.assert_close(ours[name], value, rtol=2e-5, atol=1e-7)


def test_ranks_do_what_one_process_does(two: dict[str, Any], four: dict[str, Any]) -> None:
    for results in (two, four, four["hybrid"], *four["experts"].values()):
        for kind, run in TRAININGS.items():
            assert_alike(results[kind], run(sharded(None)))


# What this warns of, that there is but one process, is meant.
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_checkpoint_of_two_ranks_is_resumed_by_one_and_by_four(
    folder: Path, two: dict[str, Any], four: dict[str, Any]
) -> None:
    for weights in (resumed(None, folder), four["resumed"]):
        assert_alike(weights, two["adafactor"])


def test_ranks_communicate_once_to_clip_and_twice_a_step_but_not_for_experts(
    two: dict[str, Any], four: dict[str, Any]
) -> None:
    assert two["communication"]["counts"] == (1, 2)
    counts = {name: results["communication"]["counts"] for name, results in four["experts"].items()}
    assert counts == {"1x4": (1, 2), "2x2": (1, 0), "2x2 by rows": (1, 2), "4x1": (0, 0)}


def test_all_ranks_find_the_norm_of_one_process(four: dict[str, Any]) -> None:
    model = sharded(None)
    set_gradients(model, 1)
    expected = clip_gradients(model.parameters(), 0.1).item()
    for results in (four, *four["experts"].values()):
        norms = results["communication"]["norms"]
        assert norms == [norms[0]] * 4
        assert norms[0] == pytest.approx(expected, rel=1e-6)


def test_columns_cannot_be_sharded(two: dict[str, Any]) -> None:
    assert two["refusal"] == (
        "Parameters must be sharded at most once by their first dimension, stacks of matrices also by their "
        "second, but one has the placements (Shard(dim=1),)."
    )


if __name__ == "__main__":
    for world in (2, 4):
        # Forked, so that the ranks need not import torch again, each for itself.
        start_processes(work, args=(world, Path(sys.argv[1])), nprocs=world, start_method="fork")
