import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

from mnmt_model.checkpoints import Progress, load_model, read_progress, restore_newest, save
from mnmt_model.errors import RunError

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Checkpoints of steps 1, 2 and 3; all weights are the step."""
    for step in (1, 2, 3):
        model, optimizer = make(weight=step)
        save(tmp_path, model, optimizer, Progress(step=step, tokens=7, flops=0, stream={"a": 12}), keep=9)
    return tmp_path


def make(weight: float = 0.0) -> tuple[nn.Linear, torch.optim.Optimizer]:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4)).sum().backward()
    optimizer.step()
    for parameter in model.parameters():
        nn.init.constant_(parameter, weight)
    return model, optimizer


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_last(path: Path) -> None:
    flip(path, -2)


def flip_first(path: Path) -> None:
    flip(path, 0)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", [truncate, empty, flip_last, flip_first, Path.unlink, make_folder])
def test_the_newest_undamaged_checkpoint_is_taken(
    folder: Path, file: str, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(folder / "step-00000003" / file)
    model, optimizer = make()
    result = restore_newest(folder, model, optimizer)
    assert result is not None
    assert (result.step, model.weight.unique().tolist()) == (2, [2.0])
    (record,) = caplog.records
    message = record.getMessage()
    assert (record.levelname, record.name.split(".")[0]) == ("WARNING", "mnmt_model")
    assert message.startswith(f"{folder}/step-00000003/{file}: ")
    assert message.endswith("; training continues from step 2")


def test_every_flipped_byte_of_the_state_is_noticed(folder: Path) -> None:
    path = folder / "step-00000003" / "state.json"
    intact = path.read_bytes()
    for position in range(len(intact)):
        flip(path, position)
        with suppress(RunError):
            read_progress(folder / "step-00000003")
            # White space that has become other white space means the same.
            assert json.loads(path.read_text()) == json.loads(intact)
        path.write_bytes(intact)


def test_several_damaged_checkpoints_are_one_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    weights = folder / "step-00000003" / "model.safetensors"
    size = weights.stat().st_size
    truncate(weights)
    (folder / "step-00000002" / "state.json").unlink()
    result = restore_newest(folder, *make())
    assert result is not None
    assert [record.getMessage() for record in caplog.records] == [
        f"{weights}: holds {size - 1} bytes, not the {size} that were written; "
        f"{folder}/step-00000002/state.json: no such file; training continues from step 1"
    ]


def test_if_all_are_damaged_all_are_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (1, 2, 3):
        flip_last(folder / f"step-0000000{step}" / "model.safetensors")
    with pytest.raises(RunError) as error:
        restore_newest(folder, *make())
    changed = [
        f"{folder}/step-0000000{step}/model.safetensors: has changed since it was written"
        for step in (3, 2, 1)
    ]
    assert str(error.value) == "; ".join(
        [*changed, f"no checkpoint is left; remove {folder} to train from the start"]
    )
    assert caplog.records == []


def test_a_damaged_checkpoint_goes_when_its_step_is_passed_again(folder: Path) -> None:
    truncate(folder / "step-00000003" / "model.safetensors")
    model, optimizer = make()
    restore_newest(folder, model, optimizer)
    save(folder, model, optimizer, Progress(step=3, tokens=8, flops=0, stream={}), keep=9)
    result = restore_newest(folder, model, optimizer)
    assert result is not None
    assert (result.step, result.tokens) == (3, 8)


@pytest.mark.parametrize("damage", [truncate, flip_last, flip_first])
def test_damaged_weights_are_not_loaded(folder: Path, damage: Callable[[Path], None]) -> None:
    damage(folder / "step-00000003" / "model.safetensors")
    with pytest.raises(RunError, match=r"model\.safetensors: (has changed since|holds \d+ bytes, not)"):
        load_model(folder / "step-00000003", nn.Linear(4, 3))
