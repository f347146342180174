import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.distributed import checkpoint as torch_checkpoint

from mnmt_model.checkpoints import load_model, restore_newest
from mnmt_model.checkpoints.average import average_checkpoints
from mnmt_model.checkpoints.named_tensors import model_tensors, optimizer_tensors
from mnmt_model.optim.adafactor import Adafactor

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adafactor": Adafactor}
RUNS = [f"{written}-{name}" for written in ("ddp-2", "fsdp-2", "fsdp-4") for name in OPTIMIZERS]
RUNS += ["ddp+experts-4-adafactor", "fsdp+experts-4-adamw"]


def launch(action: str, size: int, folder: Path) -> list[tuple[str, str]]:
    """Runs the ranks of checkpoint_ranks.py to their end; the output and the errors of each."""
    script = Path(__file__).with_name("checkpoint_ranks.py")
    command = [sys.executable, str(script), action]
    with ExitStack() as stack:
        ranks = []
        for rank in range(size):
            arguments = [*command, str(rank), str(size), str(folder)]
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            # Called first on the way out: the others may wait for a rank that has failed.
            stack.callback(process.kill)
            ranks.append(process)
        return [_end(rank) for rank in ranks]


def _end(rank: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = rank.communicate(timeout=100)
    assert rank.returncode == 0, err
    return out, err


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that 2 and 4 processes have written."""
    folder = tmp_path_factory.mktemp("distributed") / "runs"
    folder.mkdir()
    for size in (2, 4):
        launch("write", size, folder)
    return folder


def make_model() -> nn.Sequential:
    layers = [nn.Linear(128, 130), nn.Linear(130, 5), nn.Linear(5, 3), nn.LayerNorm(3), nn.Linear(3, 1)]
    experts = {"wi": nn.Parameter(torch.ones(6, 128, 130)), "wo": nn.Parameter(torch.ones(4, 5, 3))}
    return nn.Sequential(*layers, nn.ParameterDict(experts))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("size", [2, 4])
def test_checkpoints_of_any_number_of_processes_load_at_any_other_bit_for_bit(runs: Path, size: int) -> None:
    launch("read", size, runs)


@pytest.mark.parametrize("run", RUNS)
def test_one_process_reads_what_many_wrote(runs: Path, run: str) -> None:
    model = make_model()
    optimizer = OPTIMIZERS[run.split("-")[2]](model.parameters(), lr=0.01)
    progress = restore_newest(runs / run, model, optimizer)
    assert progress is not None
    assert progress.step == 2
    wanted = load_file(runs / run / "saved.safetensors")
    found = model_tensors(model) | optimizer_tensors(model, optimizer)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("run", RUNS)
def test_weights_load_and_average_without_a_process_group(runs: Path, run: str, tmp_path: Path) -> None:
    average_checkpoints([runs / run / "step-00000002"], tmp_path / "average")
    for checkpoint in (runs / run / "step-00000002", tmp_path / "average"):
        model = make_model()
        load_model(checkpoint, model)
        wanted = load_file(runs / run / "saved.safetensors")
        assert all(torch.equal(tensor, wanted[name]) for name, tensor in model.state_dict().items())


def test_ddp_writes_one_file_and_fsdp_one_a_rank(runs: Path) -> None:
    ddp, fsdp = runs / "ddp-2-adamw" / "step-00000002", runs / "fsdp-4-adamw" / "step-00000002"
    assert names(ddp) == ["model.safetensors", "optimizer.safetensors", "state.json"]
    shards = [
        f"{kind}-{rank:05d}-of-00004.safetensors" for kind in ("model", "optimizer") for rank in range(4)
    ]
    assert names(fsdp) == [*shards, "state.json"]
    rows = [load_file(fsdp / shard)["0.weight"].shape[0] for shard in shards[:4]]
    assert rows == [33, 33, 33, 31]


def test_experts_are_written_once_by_the_ranks_that_share_them_out(runs: Path) -> None:
    two = runs / "ddp+experts-4-adafactor" / "step-00000002"
    four = runs / "fsdp+experts-4-adamw" / "step-00000002"
    # Ranks 2 and 3 hold the same experts as 0 and 1, and the other weights as well.
    shards = [
        f"{kind}-{rank:05d}-of-00004.safetensors" for kind in ("model", "optimizer") for rank in range(2)
    ]
    assert names(two) == [*shards, "state.json"]
    assert sorted(load_file(two / shards[1])) == ["5.wi", "5.wo"]
    held = [load_file(path)["5.wo"].shape[0] for path in sorted(four.glob("model-*"))]
    assert held == [1, 1, 1, 1]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("run", RUNS)
def test_the_files_are_those_of_torch_distributed_checkpoint(runs: Path, run: str) -> None:
    wanted = load_file(runs / run / "saved.safetensors")
    found = {name: torch.full_like(tensor, torch.nan) for name, tensor in wanted.items()}
    reader = torch_checkpoint.HuggingFaceStorageReader(str(runs / run / "step-00000002"))
    torch_checkpoint.load(found, storage_reader=reader, no_dist=True)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.fixture(scope="module")
def trouble(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, str]]]:
    """Two runs of two ranks in trouble, and what each rank said."""
    folder = tmp_path_factory.mktemp("trouble") / "runs"
    return folder, launch("trouble", 2, folder)


def test_a_full_disk_on_one_rank_is_an_error_on_all(trouble: tuple[Path, list[tuple[str, str]]]) -> None:
    folder, ranks = trouble
    for out, _ in ranks:
        sentence = r".*step-00000002: needs [\d,]+ bytes, .* \(No space left on device\); make room and .*"
        assert re.fullmatch(sentence, out.splitlines()[0])
    assert names(folder / "full") == ["step-00000001"]


def test_all_ranks_fall_back_to_the_same_checkpoint_and_one_says_so(
    trouble: tuple[Path, list[tuple[str, str]]],
) -> None:
    _, [(first, warning), (second, silence)] = trouble
    assert [out.splitlines()[1:] for out in (first, second)] == [["1"], ["1"]]
    assert "has changed since it was written; training goes on from step 1" in warning
    assert "has changed" not in silence
