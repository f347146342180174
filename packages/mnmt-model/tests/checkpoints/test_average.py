import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from mnmt_model.checkpoints import (
    Progress,
    find_checkpoints,
    load_model,
    newest,
    read_progress,
    restore,
    save,
    weights_checksum,
)
from mnmt_model.checkpoints.average import average_checkpoints, select_checkpoints
from mnmt_model.checkpoints.state import read_state
from mnmt_model.errors import RunError

LOSSES = {10: 3.0, 20: 1.0, 30: None, 40: 2.0}


def make(seed: int, width: int = 3) -> tuple[nn.Linear, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Linear(4, width)
    return model, torch.optim.AdamW(model.parameters())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with checkpoints of steps 10, 20, 30 and 40, drawn from those seeds."""
    for step, loss in LOSSES.items():
        progress = Progress(step=step, tokens=step, flops=step, stream={}, dev_loss=loss)
        save(tmp_path / "checkpoints", *make(step), progress, keep=9)
    return tmp_path


def steps(checkpoints: list[Path]) -> list[int]:
    return [read_progress(path).step for path in checkpoints]


@pytest.mark.parametrize("last", [1, 2, 4])
def test_the_average_is_the_mean_of_the_weights(run: Path, last: int) -> None:
    average_checkpoints(select_checkpoints(run, last=last), run / "averages" / "last")
    model, _ = make(0)
    load_model(run / "averages" / "last", model)
    for name, tensor in model.named_parameters():
        weights = [make(seed)[0].get_parameter(name).detach().numpy() for seed in list(LOSSES)[-last:]]
        mean = np.mean(weights, axis=0, dtype=np.float64).astype(np.float32)
        np.testing.assert_array_equal(tensor.detach().numpy(), mean)


def test_large_weights_do_not_lose_small_ones(tmp_path: Path) -> None:
    for step, value in enumerate((2.0**24, 1.0, 1.0, 1.0), start=1):
        model, optimizer = make(0)
        nn.init.constant_(model.weight, value)
        save(
            tmp_path / "checkpoints",
            model,
            optimizer,
            Progress(step=step, tokens=0, flops=0, stream={}),
            keep=9,
        )
    average_checkpoints(select_checkpoints(tmp_path, last=4), tmp_path / "mean")
    load_model(tmp_path / "mean", model)
    assert model.weight[0, 0].item() == float(np.float32(math.fsum((2.0**24, 3.0)) / 4))


def test_an_average_says_what_it_is_of(run: Path) -> None:
    out = run / "averages" / "best-2"
    average_checkpoints(select_checkpoints(run, best=2), out)
    assert list(read_state(out).averaged_steps) == [20, 40]
    assert read_progress(out) == Progress(step=40, tokens=40, flops=40, stream={})
    assert weights_checksum(out) != weights_checksum(newest(run))


def test_an_average_is_no_checkpoint_of_training(run: Path) -> None:
    out = run / "averages" / "last-2"
    average_checkpoints(select_checkpoints(run, last=2), out)
    assert steps(find_checkpoints(run / "checkpoints")) == list(LOSSES)
    assert (newest(run), newest(out)) == (run / "checkpoints" / "step-00000040", out)
    with pytest.raises(RunError, match="last-2: is an average, which cannot be continued; name it as `init"):
        restore(out, *make(0))


def test_the_newest_and_the_best_are_chosen(run: Path) -> None:
    assert steps(select_checkpoints(run, last=3)) == [20, 30, 40]
    assert steps(select_checkpoints(run, best=2)) == [20, 40]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"last": 5}, "has 4 checkpoints, but `last` is 5; keep more with `keep_checkpoints`"),
        ({"best": 10}, "has 3 checkpoints with a dev loss, but `best` is 10; keep more with `keep_best`"),
    ],
)
def test_too_few_checkpoints_are_an_error(run: Path, options: dict[str, int], reason: str) -> None:
    with pytest.raises(RunError) as error:
        select_checkpoints(run, **options)
    assert str(error.value) == f"{run}: {reason}"


def test_damaged_weights_are_not_averaged(run: Path) -> None:
    weights = run / "checkpoints" / "step-00000030" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
    with pytest.raises(RunError, match=r"step-00000030/model\.safetensors: has changed since it was written"):
        average_checkpoints(select_checkpoints(run, last=2), run / "averages" / "mean")
    assert not (run / "averages").exists()


def test_weights_of_another_shape_are_not_averaged(run: Path, tmp_path: Path) -> None:
    other = save(
        tmp_path / "other", *make(0, width=5), Progress(step=1, tokens=0, flops=0, stream={}), keep=1
    )
    with pytest.raises(RunError, match=r"step-00000001: is of another model than .*step-00000040"):
        average_checkpoints([*select_checkpoints(run, last=1), other], run / "mean")


class Gated(nn.Module):
    """A model whose gate has a bias, as those of newer versions have."""

    def __init__(self, bias: float | None) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 2, bias=False)
        nn.init.ones_(self.gate.weight)
        if bias is not None:
            self.gate.register_buffer("balance_bias", torch.full((2,), bias))


def test_a_bias_that_an_older_version_did_not_write_counts_as_0(tmp_path: Path) -> None:
    for step, bias in enumerate((None, None, 0.25, 0.5), start=1):
        layer = nn.ModuleList([Gated(bias)])
        progress = Progress(step=step, tokens=0, flops=0, stream={})
        save(tmp_path / "checkpoints", layer, torch.optim.AdamW(layer.parameters()), progress, keep=9)
    average_checkpoints(select_checkpoints(tmp_path, last=4), tmp_path / "mean")
    model = nn.ModuleList([Gated(7.0)])
    load_model(tmp_path / "mean", model)
    assert model.state_dict()["0.gate.balance_bias"].tolist() == [0.75 / 4] * 2
    assert model.state_dict()["0.gate.weight"].eq(1).all()
