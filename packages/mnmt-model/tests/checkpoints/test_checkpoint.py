import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

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
    restore_newest,
    save,
    weights_checksum,
)
from mnmt_model.errors import RunError
from mnmt_model.optim.adafactor import Adafactor


def make_model(width: int = 129) -> nn.Module:
    """Adafactor factors the first weight and no other; the last layer has no gradient."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(128, width), nn.Linear(width, 3), nn.LayerNorm(3), nn.Linear(3, 2))


def trained(make_optimizer, steps: int, width: int = 129):
    model = make_model(width)
    optimizer = make_optimizer(model.parameters(), lr=0.01)
    for _ in range(steps):
        train_step(model, optimizer)
    return model, optimizer


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model[:3](torch.ones(1, 128)).pow(3).sum().backward()
    optimizer.step()


def progress(step: int, dev_loss: float | None = None) -> Progress:
    return Progress(
        step=step,
        tokens=6 * step,
        flops=10**30 + step,
        stream={"position": step, "é": [0.1, None]},
        dev_loss=dev_loss,
        extras={"waited": 2, "best": 1 / 3},
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def momentum(parameters, lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9)


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("make_optimizer", [Adafactor, torch.optim.AdamW, momentum])
def test_a_restored_run_goes_on_as_if_never_stopped(
    make_optimizer: Callable[..., torch.optim.Optimizer], steps: int, tmp_path: Path
) -> None:
    model, optimizer = trained(make_optimizer, steps)
    save(tmp_path, model, optimizer, progress(steps), keep=1)
    other, other_optimizer = trained(make_optimizer, steps=1)
    assert restore_newest(tmp_path, other, other_optimizer) == progress(steps)
    for pair in ((model, optimizer), (other, other_optimizer)):
        train_step(*pair)
        train_step(*pair)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert str(optimizer.state_dict()) == str(other_optimizer.state_dict())


def test_restoring_leaves_the_rates_and_no_gradients(tmp_path: Path) -> None:
    save(tmp_path, *trained(Adafactor, 1), progress(1), keep=1)
    model, optimizer = trained(Adafactor, 0)
    restore_newest(tmp_path, model, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.01
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_files_are_named_and_hold_names(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, *trained(torch.optim.AdamW, 1), progress(1000), keep=1)
    assert checkpoint == tmp_path / "step-00001000"
    assert names(checkpoint) == ["model.safetensors", "optimizer.safetensors", "state.json"]
    header = (checkpoint / "optimizer.safetensors").read_bytes()[:2000]
    assert b'"0.weight.exp_avg_sq"' in header


@pytest.mark.parametrize(
    ("keep", "keep_best", "kept"),
    [
        (1, 0, [50]),
        (2, 0, [40, 50]),
        (1, 2, [20, 40, 50]),
        (2, 9, [20, 30, 40, 50]),
        (9, 0, [10, 20, 30, 40, 50]),
    ],
)
def test_the_newest_and_the_best_are_kept(keep: int, keep_best: int, kept: list[int], tmp_path: Path) -> None:
    model, optimizer = trained(Adafactor, 0)
    losses = {10: float("nan"), 20: 2.0, 30: 3.0, 40: 2.5, 50: None}
    for step, loss in losses.items():
        save(tmp_path, model, optimizer, progress(step, loss), keep=keep, keep_best=keep_best)
    assert [read_progress(path).step for path in find_checkpoints(tmp_path)] == kept


def test_what_killed_processes_left_does_not_count_and_is_removed(tmp_path: Path) -> None:
    for name in ("step-00000011.partial", "step-00000001.removed.partial"):
        (tmp_path / name).mkdir()
    assert find_checkpoints(tmp_path) == []
    save(tmp_path, *trained(Adafactor, 0), progress(1), keep=1)
    assert names(tmp_path) == ["step-00000001"]


def test_checkpoints_of_later_steps_are_removed(tmp_path: Path) -> None:
    run = trained(Adafactor, 0)
    for step in (10, 20, 30, 15):
        save(tmp_path, *run, progress(step), keep=2)
    assert names(tmp_path) == ["step-00000015"]


def test_a_run_or_a_checkpoint_names_the_newest(tmp_path: Path) -> None:
    run = trained(Adafactor, 0)
    older, newer = (save(tmp_path / "checkpoints", *run, progress(step), keep=2) for step in (1, 2))
    assert (newest(tmp_path), newest(older)) == (newer, older)
    with pytest.raises(RunError, match="nowhere: no such run or checkpoint"):
        newest(tmp_path / "nowhere")
    with pytest.raises(RunError, match="holds no checkpoint; name the folder of a trained run"):
        newest(tmp_path / "checkpoints")


def test_weights_have_a_checksum(tmp_path: Path) -> None:
    same, trained_more = trained(Adafactor, 0), trained(Adafactor, 1)
    saved = [
        save(tmp_path / f"{i}", *run, progress(1), keep=1) for i, run in enumerate((same, same, trained_more))
    ]
    first, second, third = map(weights_checksum, saved)
    assert first == second
    assert second != third


def test_a_model_of_another_size_is_refused(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, *trained(Adafactor, 0), progress(1), keep=1)
    with pytest.raises(RunError) as error:
        load_model(checkpoint, make_model(130))
    assert str(error.value) == (
        f"{checkpoint}: does not fit the model: 0.weight is (129, 128) in it, but (130, 128) in the model"
    )


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        (slice(0, 3), "it has 3.bias, 3.weight, which the model has not"),
        (slice(0, 1), "it has 1.bias, 1.weight, 2.bias and 3 more, which the model has not"),
    ],
)
def test_a_model_with_fewer_tensors_is_refused(layers: slice, reason: str, tmp_path: Path) -> None:
    checkpoint = save(tmp_path, *trained(Adafactor, 0), progress(1), keep=1)
    with pytest.raises(RunError, match=f"step-00000001: does not fit the model: {reason}$"):
        load_model(checkpoint, make_model()[layers])


def test_another_optimizer_is_refused(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, *trained(Adafactor, 1), progress(1), keep=1)
    with pytest.raises(RunError, match=r"does not fit the optimizer: it has no 0\.bias\.exp_avg, .* more$"):
        restore(checkpoint, *trained(torch.optim.AdamW, 0))


def test_a_disk_without_room_is_noticed_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(Adafactor, 0)
    older = save(tmp_path, *run, progress(1), keep=1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    monkeypatch.setattr("mnmt_model.checkpoints.checkpoint.write_tensors", lambda *args: pytest.fail("wrote"))
    needed = sum(parameter.nbytes for parameter in run[0].parameters())
    with pytest.raises(RunError) as error:
        save(tmp_path, *run, progress(2), keep=1)
    assert str(error.value) == (
        f"{tmp_path}/step-00000002: needs {needed:,} bytes, and the disk, which has 1,000 free, refuses them "
        "(No space left on device); make room and run this again"
    )
    assert names(tmp_path) == [older.name]


def test_a_file_that_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    run = trained(torch.optim.AdamW, 1)
    older = save(tmp_path, *run, progress(1), keep=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(
            RunError, match=r"step-00000002: needs .* refuses them \(File too large\); make room"
        ):
            save(tmp_path, *run, progress(2), keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == [older.name]
    assert restore_newest(tmp_path, *run) == progress(1)


SAVE_FOR_EVER = """
import itertools, sys
from pathlib import Path
import torch
from mnmt_model.checkpoints import Progress, restore_newest, save

model = torch.nn.Linear(200, 200)
optimizer = torch.optim.AdamW(model.parameters())
saved = restore_newest(Path(sys.argv[1]), model, optimizer)
for step in itertools.count(saved.step + 1 if saved else 1):
    save(Path(sys.argv[1]), model, optimizer, Progress(step=step, tokens=0, flops=0, stream={}), keep=2)
    print(step, flush=True)
"""


@pytest.mark.slow
def test_a_process_killed_while_saving_leaves_a_run_that_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for wait in (0.001, 0.004):
        command = [sys.executable, "-c", SAVE_FOR_EVER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            done = [int(process.stdout.readline())]
            time.sleep(wait)
            os.kill(process.pid, signal.SIGKILL)
            done += map(int, process.stdout)
        model = nn.Linear(200, 200)
        found = restore_newest(tmp_path, model, torch.optim.AdamW(model.parameters()))
        assert found is not None
        assert found.step >= max(done)
    assert caplog.records == []
