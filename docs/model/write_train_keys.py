"""Write the table of `[train]`'s keys into optimisation.md, from the fields and docstrings of `TrainConfig`.

    python docs/model/write_train_keys.py [--check]

With `--check`, nothing is written, and the exit status is 1 if the page has another table.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from mnmt_model import TrainConfig

PAGE = Path(__file__).parent / "optimisation.md"
START, END = "<!-- keys of TrainConfig -->\n", "<!-- end of keys -->\n"


def rows() -> Iterator[str]:
    """Yield a line of the table for each field."""
    (definition,) = ast.parse(inspect.getsource(TrainConfig)).body
    assert isinstance(definition, ast.ClassDef)
    for field, docstring in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(docstring, ast.Expr):
            name = ast.unparse(field.target)
            text = " ".join(ast.literal_eval(docstring.value).split())
            yield f"| `{name}` | {_default(getattr(TrainConfig(), name))} | {text} |\n"


def page_with(table: str, page: str) -> str:
    """Return the page with the table between its marks."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table}\n{END}{after}"


def _default(value: object) -> str:
    """Return a default as TOML writes it."""
    if value is None or not isinstance(value, bool | str | int | float):
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    expected = page_with("| key | default | |\n|--|--|--|\n" + "".join(rows()), page)
    if "--check" in sys.argv[1:]:
        sys.exit(int(page != expected))
    PAGE.write_text(expected, encoding="utf-8")
