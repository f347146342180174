"""Reading of large shards: pairs a second, bytes from the disk for each byte of tokens used, and open files.

Claim: a shuffled shard is read from end to end, whatever its number of segments and of ranks, and few
files are open. Peer: the same pairs in the order of the text, whose rows are drawn one by one. Cited in
docs/data/mixing.md.

Segments of random token ids are written into a temporary folder: the same number of pairs as few large and as
many small segments. The share of rank 0 of each number of ranks is read over some windows of batches: cold,
after the system was asked to forget the files, and warm, the same again. The bytes are those that the kernel
fetched from storage for this process (/proc/self/io); a page takes 4,096, and its readahead is included.

    python -m benchmarks.data.large_shards --out benchmarks/results/data/large_shards.json
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.measurement import Counts, Figures, Out, print_table, provenance, run, write_report
from mnmt_data.prepare.shuffle import BLOCK_ROWS
from mnmt_data.store import Ragged, Shard, offsets_of, segment_path, write_segment
from mnmt_data.stream import BatchStream, Mixture, Share

TASK = "en-de"


def main(
    *,
    pairs: int = 12_000_000,
    segments: Counts = (200, 1200),
    ranks: Counts = (1, 8),
    windows: int = 8,
    batch_tokens: int = 16_384,
    folder: Path | None = None,
    out: Out = None,
) -> None:
    """Print pairs a second and bytes read, cold and warm.

    Args:
        pairs: Sentence pairs of the shard; a million take 140 MB.
        segments: Numbers of segments.
        ranks: Numbers of ranks.
        windows: Windows of batches that are read.
        batch_tokens: Tokens of a batch of all ranks.
        folder: Folder for the shards; by default that of temporary files.
        out: JSON file for the figures.
    """
    rows = []
    for number in segments:
        for block_rows in (1, BLOCK_ROWS):
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                shard = write_shard(Path(temporary), number, pairs // number, block_rows)
                rows += [measure(shard, number, count, windows, batch_tokens) for count in ranks]
    print_table(rows)
    figures = {"pairs": pairs, "windows": windows, "batch_tokens": batch_tokens, "results": rows}
    write_report(out, "reading of large shards", figures, provenance("mnmt-data", "pyarrow", "numpy"))


def write_shard(folder: Path, segments: int, pairs: int, block_rows: int) -> Shard:
    """Write segments of pairs of 10 to 49 random tokens a side; random rows need no shuffling."""
    for number in range(segments):
        random = np.random.default_rng(number)
        sides = (random_side(random, pairs) for _ in range(2))
        write_segment(segment_path(folder, number), *sides, block_rows=block_rows)
    return Shard.open(folder)


def random_side(random: np.random.Generator, pairs: int) -> Ragged:
    """Return rows of 10 to 49 random tokens."""
    lengths = random.integers(10, 50, pairs)
    return Ragged(random.integers(3, 32_000, int(lengths.sum()), dtype=np.uint16), offsets_of(lengths))


def measure(shard: Shard, segments: int, ranks: int, windows: int, batch_tokens: int) -> Figures:
    """Read the share of one rank twice, first from the disk."""
    forget(shard.path)
    share = Share(rank=0, num_ranks=ranks)
    cold, warm = (read({TASK: shard.path}, share, windows, batch_tokens) for _ in range(2))
    return {
        "segments": segments,
        "order": "shuffled" if shard.block_rows > 1 else "of the text",
        "ranks": ranks,
        "cold_pairs_per_second": cold["pairs_per_second"],
        "warm_pairs_per_second": warm["pairs_per_second"],
        "read_mb": round(cold["read"] / 2**20, 1),
        "token_mb": round(cold["used"] / 2**20, 1),
        "bytes_read_per_byte_used": round(cold["read"] / cold["used"], 2),
        "open_files": cold["open_files"],
    }


def read(folders: Mapping[str, Path], share: Share, windows: int, batch_tokens: int) -> Figures:
    """Read a rank's share of some windows in a new stream of {task: its shard}, all of one weight."""
    shards = {task: Shard.open(path) for task, path in folders.items()}
    mixture = Mixture(dict.fromkeys(shards, 1 / len(shards)))
    stream = BatchStream(shards, mixture, batch_tokens=batch_tokens, seed=1)
    open_before, read_before, start = count_open_files(), bytes_read(), time.perf_counter()
    pairs = tokens = open_files = 0
    for number in range(windows):
        window = stream.window(number * stream.sampler.window_batches(0), share)
        pairs += len(window.pairs.ids)
        tokens += len(window.pairs.src.values) + len(window.pairs.tgt.values)
        open_files = max(open_files, count_open_files() - open_before)
    seconds = time.perf_counter() - start
    return {
        "pairs_per_second": round(pairs / seconds),
        "read": bytes_read() - read_before,
        "used": 2 * tokens,
        "open_files": open_files,
    }


def forget(folder: Path) -> None:
    """Ask the system to drop the pages of all files of a folder."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_read() -> int:
    """Return the bytes that storage has delivered to this process."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def count_open_files() -> int:
    """Return the number of this process's descriptors."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


if __name__ == "__main__":
    run(main, smoke={"pairs": 20_000, "segments": (2, 10), "windows": 2})
