"""Sentence pairs in Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from mnmt_data.errors import DataError
from mnmt_data.readers.arrow_tables import TableBlocks
from mnmt_data.readers.byte_sources import check_is_file, unreadable
from mnmt_data.readers.columns import OneTable
from mnmt_data.readers.reader import BLOCK_PAIRS, Block, Choice, every_block


@dataclass(frozen=True)
class ParquetPairs(OneTable):
    """Reads a Parquet file batch by batch, in the columns of `find_sides`.

    An optional column `origin` holds the original language of each pair.
    """

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs; a null is an empty sentence.

        Args:
            skip_bad: Whether to list rows that are not UTF-8 in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing or damaged, or has no columns for the task.
        """
        check_is_file(self.path)
        try:
            with pq.ParquetFile(self.path) as table:

                def batches(names: list[str]) -> Iterable[pa.RecordBatch]:
                    yield from table.iter_batches(batch_size=BLOCK_PAIRS, columns=names)

                schema = table.schema_arrow
                yield from TableBlocks(self.path, self.task, self.scores, schema, skip_bad, choice).of(
                    batches
                )
        except (pa.ArrowException, OSError) as error:
            raise DataError(unreadable(self.path, "Parquet", error)) from None
