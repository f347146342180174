"""Run tables and run records: measurements, checked and ready to fit."""

from mnmt_laws.tables.mixture import format_mixture, parse_mixture
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import observe
from mnmt_laws.tables.table import RunTable, example_table, read_table

__all__ = [
    "Observations",
    "RunTable",
    "example_table",
    "format_mixture",
    "observe",
    "parse_mixture",
    "read_table",
]
