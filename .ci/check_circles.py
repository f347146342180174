"""Check that no file of a package imports itself through others: inside functions and for types, too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Print one circle of each package that has any; return 1 if there is one, else 0."""
    circles = [circle for source in sorted(ROOT.glob("packages/*/src")) for circle in find_circle(source)]
    print("\n".join(circles) or "circles: no file imports itself through others")
    return 1 if circles else 0


def find_circle(source: Path) -> Iterator[str]:
    """Yield the first circle among the files under `source`, if there is one."""
    # A compiled module has a stub only; where there is both, the code counts.
    sources = [*source.rglob("*.pyi"), *source.rglob("*.py")]
    files = {module_name(file, source): file for file in sources}
    imports = {name: set(imported_modules(file, name, files)) - {name} for name, file in files.items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield " -> ".join(reversed(error.args[1]))


def module_name(file: Path, source: Path) -> str:
    """Return the name by which a file is imported."""
    parts = file.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(file: Path, name: str, files: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of `files` that a file imports anywhere.

    Only named modules count, not a package's `__init__` that runs on an import of its submodule.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (module for module in submodules if module in files)
            if node.module in files and not all(module in files for module in submodules):
                yield node.module


if __name__ == "__main__":
    sys.exit(main())
