from pathlib import Path

import pytest
import torch

from mnmt_model import EncoderDecoder, RunError, Shape, checkpoint
from mnmt_model.adafactor import Adafactor
from mnmt_model.initialise import initialise
from mnmt_model.loss import total_loss

SHAPE = Shape(d_model=8, num_heads=1, head_dim=8, d_ff=16)
BATCH = torch.tensor([[3, 4, 1]])


def trained(optimizer_class, steps: int):
    model = EncoderDecoder(SHAPE, 10)
    initialise(model, seed=1)
    optimizer = optimizer_class(model.parameters(), lr=0.01)
    for _ in range(steps):
        train_step(model, optimizer)
    return model, optimizer


def train_step(model, optimizer) -> None:
    optimizer.zero_grad()
    total_loss(model, BATCH, BATCH).backward()
    optimizer.step()


def progress(step: int) -> checkpoint.Progress:
    return checkpoint.Progress(step=step, tokens=6 * step, flops=7, stream={"position": step})


@pytest.mark.parametrize("optimizer_class", [Adafactor, torch.optim.AdamW])
def test_a_restored_run_goes_on_as_if_never_stopped(optimizer_class, tmp_path: Path) -> None:
    model, optimizer = trained(optimizer_class, steps=3)
    checkpoint.save(tmp_path, model, optimizer, progress(3), keep=1)
    other, other_optimizer = trained(optimizer_class, steps=0)
    assert checkpoint.restore(checkpoint.checkpoints(tmp_path)[-1], other, other_optimizer) == progress(3)
    for pair in ((model, optimizer), (other, other_optimizer)):
        train_step(*pair)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_only_the_newest_are_kept_and_half_written_ones_do_not_count(tmp_path: Path) -> None:
    model, optimizer = trained(Adafactor, steps=1)
    for step in (1, 2, 10):
        checkpoint.save(tmp_path, model, optimizer, progress(step), keep=2)
    (tmp_path / "step-00000011.partial").mkdir()
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step-00000002", "step-00000010"]


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    model, optimizer = trained(Adafactor, steps=1)
    checkpoint.save(tmp_path, model, optimizer, progress(1), keep=1)
    weights = tmp_path / "step-00000001" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(RunError, match=r"model\.safetensors: cannot be read .*remove this checkpoint"):
        checkpoint.load_model(tmp_path / "step-00000001", model)


def test_another_shape_is_refused_in_one_line(tmp_path: Path) -> None:
    model, optimizer = trained(Adafactor, steps=1)
    checkpoint.save(tmp_path, model, optimizer, progress(1), keep=1)
    with pytest.raises(RunError, match=r"does not fit the model of run\.json") as error:
        checkpoint.load_model(tmp_path / "step-00000001", EncoderDecoder(SHAPE, 11))
    assert "\n" not in str(error.value)
