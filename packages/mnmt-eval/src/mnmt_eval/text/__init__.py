"""Text files: their lines and checksums, and tables of sentences."""

from mnmt_eval.text.lines import checksum, decode_line, join_lines, read_lines
from mnmt_eval.text.tables import (
    TableRow,
    is_json_lines,
    parse_object,
    read_text,
    split_rows,
    text_of,
    value_of,
)

__all__ = [
    "TableRow",
    "checksum",
    "decode_line",
    "is_json_lines",
    "join_lines",
    "parse_object",
    "read_lines",
    "read_text",
    "split_rows",
    "text_of",
    "value_of",
]
