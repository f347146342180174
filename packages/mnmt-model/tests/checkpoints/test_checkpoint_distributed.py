import re
import subprocess
import sys
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

pytestmark = pytest.mark.slow
OPTIMIZERS = {"adamw": torch.optim.AdamW, "adafactor": Adafactor}
RUNS = [f"{written}-{name}" for written in ("ddp-2", "fsdp-2", "fsdp-4") for name in OPTIMIZERS]
RUNS += ["ddp+experts-4-adafactor", "fsdp+experts-4-adamw", "fsdp+rows-4-adafactor"]


def launch(folder: Path, *jobs: str) -> None:
    """Run jobs such as `write-2` of checkpoint_ranks.py, one after the other."""
    script = Path(__file__).with_name("checkpoint_ranks.py")
    command = [sys.executable, str(script), str(folder), *jobs]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that 2 and 4 processes have written."""
    folder = tmp_path_factory.mktemp("distributed") / "runs"
    folder.mkdir()
    launch(folder, "write-2", "write-4")
    return folder


def make_model() -> nn.Sequential:
    layers = [nn.Linear(128, 130), nn.Linear(130, 5), nn.Linear(5, 3), nn.LayerNorm(3), nn.Linear(3, 1)]
    experts = {"wi": nn.Parameter(torch.ones(6, 128, 130)), "wo": nn.Parameter(torch.ones(4, 5, 3))}
    return nn.Sequential(*layers, nn.ParameterDict(experts))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_checkpoints_of_any_number_of_processes_load_at_any_other_bit_for_bit(runs: Path) -> None:
    launch(runs, "read-2", "read-4")


@pytest.mark.parametrize("run", RUNS)
def test_one_process_reads_what_many_wrote(runs: Path, run: str) -> None:
    model = make_model()
    optimizer = OPTIMIZERS[run.split("-")[2]](model.parameters(), lr=0.01)
    progress = restore_newest(runs / run, model, optimizer)
    assert progress is not None
    assert progress.step == 2
    expected = load_file(runs / run / "saved.safetensors")
    loaded = model_tensors(model) | optimizer_tensors(model, optimizer)
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)


@pytest.mark.parametrize("run", RUNS)
def test_weights_load_and_average_without_a_process_group(runs: Path, run: str, tmp_path: Path) -> None:
    average_checkpoints([runs / run / "step-00000002"], tmp_path / "average")
    for checkpoint in (runs / run / "step-00000002", tmp_path / "average"):
        model = make_model()
        load_model(checkpoint, model)
        expected = load_file(runs / run / "saved.safetensors")
        assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())


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
    rows = runs / "fsdp+rows-4-adafactor" / "step-00000002"
    held = [load_file(path)["5.wi"].shape for path in sorted(rows.glob("model-*"))]
    assert held == [(3, 64, 130)] * 4


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("run", RUNS)
def test_the_files_are_those_of_torch_distributed_checkpoint(runs: Path, run: str) -> None:
    expected = load_file(runs / run / "saved.safetensors")
    loaded = {name: torch.full_like(tensor, torch.nan) for name, tensor in expected.items()}
    reader = torch_checkpoint.HuggingFaceStorageReader(str(runs / run / "step-00000002"))
    torch_checkpoint.load(loaded, storage_reader=reader, no_dist=True)
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)


@pytest.fixture(scope="module")
def trouble(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, str]]]:
    """Two runs of two ranks in trouble, and the output and errors of each rank."""
    folder = tmp_path_factory.mktemp("trouble") / "runs"
    launch(folder, "trouble-2")
    files = [
        [folder.with_name(f"runs-trouble-2-{rank}.{name}") for name in ("out", "err")] for rank in (0, 1)
    ]
    return folder, [(out.read_text(), err.read_text()) for out, err in files]


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
    assert "has changed since it was written; training continues from step 1" in warning
    assert "has changed" not in silence
