import tempfile
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.checkpoints.tensor_files import TensorFiles, write_tensors
from mnmt_model.distributed.shards import shard_rows

SIZES = st.integers(1, 9)
GRIDS = st.tuples(SIZES, st.integers(1, 3))
SHAPES = st.lists(st.integers(1, 5), max_size=2).flatmap(
    lambda rest: st.integers(0, 20).map(lambda rows: (rows, *rest))
)


Grid = tuple[int, int]
"""Ranks that share out the rows, and ranks that share out the columns of each."""


def cells(shape: tuple[int, ...], grid: Grid) -> list[tuple[slice, ...]]:
    """The part of each rank; with one dimension, only rows are shared out."""
    sides = [
        [shard_rows(length, rank=rank, size=size) for rank in range(size)]
        for length, size in zip(shape[:2], grid, strict=False)
    ]
    return [tuple(slice(rows.start, rows.stop) for rows in cell) for cell in product(*sides)]


def write_shards(folder: Path, whole: torch.Tensor, *, grid: Grid) -> TensorFiles:
    """As the ranks of a run write it: none but those of the first row write no rows."""
    paths = []
    for rank, cell in enumerate(cells(tuple(whole.shape), grid)):
        part = whole[cell]
        if cell[0].start == 0 or len(part):
            paths.append(folder / f"{rank}.safetensors")
            starts = [side.start for side in cell] + [0] * (whole.dim() - len(cell))
            write_tensors(paths[-1], {"x": (part, tuple(starts))})
    return TensorFiles(paths)


@given(num_rows=st.integers(0, 40), size=SIZES)
def test_rows_are_cut_as_torch_cuts_them(num_rows: int, size: int) -> None:
    rows = [shard_rows(num_rows, rank=rank, size=size) for rank in range(size)]
    assert [row for rank in rows for row in rank] == list(range(num_rows))
    if num_rows:
        chunks = [len(chunk) for chunk in torch.arange(num_rows).chunk(size)]
        assert [len(rank) for rank in rows if rank] == chunks


@given(shape=SHAPES, written=GRIDS, read=GRIDS)
def test_parts_written_by_any_number_are_read_by_any_other(
    shape: tuple[int, ...], written: Grid, read: Grid
) -> None:
    whole = torch.randn(shape)
    with tempfile.TemporaryDirectory() as folder:
        files = write_shards(Path(folder), whole, grid=written)
        assert files.shapes == {"x": shape}
        assert torch.equal(files.read("x"), whole)
        for cell in cells(shape, read):
            expected = whole[cell]
            part = torch.full_like(expected, torch.nan)
            files.copy_part("x", part, tuple([side.start for side in cell] + [0] * (whole.dim() - len(cell))))
            assert torch.equal(part, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_scalars_and_types_are_kept(dtype: torch.dtype, tmp_path: Path) -> None:
    step = torch.tensor(3, dtype=dtype)
    write_tensors(tmp_path / "a.safetensors", {"step": (step, ())})
    files = TensorFiles([tmp_path / "a.safetensors"])
    result = files.read("step")
    assert (files.shapes, result.dtype, result.item()) == ({"step": ()}, dtype, 3)
