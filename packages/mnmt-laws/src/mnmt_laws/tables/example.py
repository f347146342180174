"""A run table to try things on."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from mnmt_laws.tables.table import RunTable, read_table


def example_table() -> RunTable:
    """Losses, BLEU and chrF of Transformers trained on two made-up languages, over sizes × mixtures.

    The irreducible loss of both languages is known, and stands in the column `irreducible`.
    """
    with as_file(files("mnmt_laws") / "tables" / "example.csv") as path:
        return replace(read_table(path), source="example")
