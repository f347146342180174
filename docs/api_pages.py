"""Write the API pages: one a package, with the public names of the package and of its rooms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PAGE = """# {package}

{rooms}
"""
ROOM = """
## {module}

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :imported-members:
   :exclude-members: {elsewhere}
```
"""


def write_api_pages(packages: Path, folder: Path) -> None:
    """Write `PACKAGE.md` for every package below `packages` into `folder`."""
    folder.mkdir(exist_ok=True)
    for package in sorted(path.parent for path in packages.glob("*/src/*/__init__.py")):
        top = public_names(package)
        doors = (path.parent for path in sorted(package.glob("*/__init__.py")) if path.parent.name != "cli")
        rooms = [ROOM.format(module=package.name, elsewhere="__version__")]
        rooms += [
            ROOM.format(module=f"{package.name}.{room.name}", elsewhere=", ".join(top))
            for room in doors
            if public_names(room)
        ]
        page = PAGE.format(package=package.name, rooms="".join(rooms))
        (folder / f"{package.name}.md").write_text(page, encoding="utf-8")


def public_names(module: Path) -> list[str]:
    """Return the names that a package or room offers: those of its stub, or of its `__all__`."""
    stub = module / "__init__.pyi"
    if stub.exists():
        return sorted(alias.asname or alias.name for alias in imports(stub))
    for node in ast.walk(ast.parse((module / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def imports(stub: Path) -> Iterator[ast.alias]:
    """Yield the names that a stub imports."""
    for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from node.names
