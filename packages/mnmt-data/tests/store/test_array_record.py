from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import read_record, write_record


@dataclass(frozen=True)
class Sums:
    sums: NDArray[np.float64]
    step: int
    text: str


def test_a_record_is_read_as_it_was_written_and_damage_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sums.npz"
    assert read_record(path, Sums) is None
    write_record(path, Sums(sums=np.arange(6.0).reshape(3, 2), step=7, text="beam:4|ä"))
    record = read_record(path, Sums)
    assert record is not None
    assert (record.sums.tolist(), record.step, record.text) == ([[0, 1], [2, 3], [4, 5]], 7, "beam:4|ä")
    content = path.read_bytes()
    for broken in (b"", b"no numbers", content[:-30]):
        path.write_bytes(broken)
        assert read_record(path, Sums) is None
    np.savez(path, sums=np.zeros(2), step=np.array(1))
    assert read_record(path, Sums) is None
