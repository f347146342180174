import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.checkpoints.tensor_files import TensorFiles, write_tensors
from mnmt_model.distributed.shards import shard_rows

SIZES = st.integers(1, 9)
SHAPES = st.lists(st.integers(1, 3), max_size=2).flatmap(
    lambda rest: st.integers(0, 20).map(lambda rows: (rows, *rest))
)


def write_shards(folder: Path, whole: torch.Tensor, *, size: int) -> TensorFiles:
    """As the ranks of a run write it: none but the first writes no rows."""
    paths = []
    for rank in range(size):
        rows = shard_rows(len(whole), rank=rank, size=size)
        if rank == 0 or rows:
            paths.append(folder / f"{rank}.safetensors")
            write_tensors(paths[-1], {"x": (whole[rows.start : rows.stop], rows.start)})
    return TensorFiles(paths)


@given(num_rows=st.integers(0, 40), size=SIZES)
def test_rows_are_cut_as_torch_cuts_them(num_rows: int, size: int) -> None:
    rows = [shard_rows(num_rows, rank=rank, size=size) for rank in range(size)]
    assert [row for rank in rows for row in rank] == list(range(num_rows))
    if num_rows:
        chunks = [len(chunk) for chunk in torch.arange(num_rows).chunk(size)]
        assert [len(rank) for rank in rows if rank] == chunks


@given(shape=SHAPES, written=SIZES, read=SIZES)
def test_rows_written_by_any_number_are_read_by_any_other(
    shape: tuple[int, ...], written: int, read: int
) -> None:
    whole = torch.randn(shape)
    with tempfile.TemporaryDirectory() as folder:
        files = write_shards(Path(folder), whole, size=written)
        assert files.shapes == {"x": shape}
        assert torch.equal(files.read("x"), whole)
        for rank in range(read):
            rows = shard_rows(len(whole), rank=rank, size=read)
            local = torch.full((len(rows), *shape[1:]), torch.nan)
            files.copy_rows("x", local, rows.start)
            assert torch.equal(local, whole[rows.start : rows.stop])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_scalars_and_types_are_kept(dtype: torch.dtype, tmp_path: Path) -> None:
    step = torch.tensor(3, dtype=dtype)
    write_tensors(tmp_path / "a.safetensors", {"step": (step, 0)})
    files = TensorFiles([tmp_path / "a.safetensors"])
    result = files.read("step")
    assert (files.shapes, result.dtype, result.item()) == ({"step": ()}, dtype, 3)
