"""Check rooms, lengths of files, names, docstrings, and conflicts left in pages, which ruff does not."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_NAMES = 12
"""Modules and folders at the top of a package."""
MAX_LINES = 400
"""Lines of a source file."""
PARTICIPLES = {
    "begun",
    "chosen",
    "counting",
    "drawn",
    "found",
    "given",
    "here",
    "kept",
    "made",
    "making",
    "own",
}
PARTICIPLES |= {"said", "seen", "shown", "told", "wanted"}
"""Names that do not describe a thing."""
PARAGRAPHS = ("Returns:", "Yields:")
SECTIONS = ("Args:", "Raises:", *PARAGRAPHS)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def main() -> int:
    """Print each problem on a line; return 1 if there is one, else 0."""
    problems = [*check_rooms(), *check_pages()]
    problems += [problem for file in source_files() for problem in check_file(file)]
    print("\n".join(problems) or "style: all files are as they should be")
    return 1 if problems else 0


def source_files() -> Iterator[Path]:
    """Yield the Python files of the packages and of the repository's tools."""
    for folder in ("packages/*/src", "benchmarks", "studies", ".ci"):
        for place in sorted(ROOT.glob(folder)):
            yield from sorted(place.rglob("*.py"))


def check_rooms() -> Iterator[str]:
    """Yield the packages that have too many names at their top."""
    for package in sorted(ROOT.glob("packages/*/src/*/")):
        names = {path.stem for path in package.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
        names = {name for name in names if not name.startswith("__")}
        if len(names) > MAX_NAMES:
            yield f"{package.relative_to(ROOT)}: {len(names)} names at its top, at most {MAX_NAMES} allowed"


def check_pages() -> Iterator[str]:
    """Yield the conflict marks of merges in Markdown."""
    for page in [
        *sorted(ROOT.glob("*.md")),
        *sorted(ROOT.glob("docs/**/*.md")),
        *ROOT.glob("packages/*/*.md"),
    ]:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                yield f"{page.relative_to(ROOT)}:{number}: a conflict of a merge is not resolved"


def check_file(file: Path) -> Iterator[str]:
    """Yield the problems of a source file."""
    text = file.read_text(encoding="utf-8")
    name = file.relative_to(ROOT).as_posix()
    if (count := text.count("\n")) > MAX_LINES:
        yield f"{name}: has {count} lines, at most {MAX_LINES} are allowed"
    if file.stem in PARTICIPLES:
        yield f"{name}: a file is called after the thing in it, not `{file.stem}`"
    for node in ast.walk(ast.parse(text)):
        for word in bound_names(node):
            if word.strip("_") in PARTICIPLES:
                yield f"{name}:{node.lineno}: `{word}` does not say what it is"  # type: ignore[attr-defined]
        if isinstance(node, Definition):
            yield from (f"{name}:{problem}" for problem in check_docstring(node))


def bound_names(node: ast.AST) -> list[str]:
    """Return the names that a node gives to something."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.name] if isinstance(node, Definition) else []


def check_docstring(node: Definition) -> Iterator[str]:
    """Yield the entries of a docstring's sections that are no sentences, each with its line."""
    docstring = ast.get_docstring(node)
    if docstring is None:
        return
    first = node.body[0].lineno
    for number, entry in entries(docstring):
        text = re.sub(r"^[\w*`, .\[\]]+(\([^)]*\))?: ", "", entry)
        if re.match(r"[a-z][a-z]+[ ,.]", text):
            yield f"{first + number}: `{text[:40]}…` must begin with a capital"
        if not text.endswith((".", "!", "?", ":", "`", "…")):
            yield f"{first + number}: `…{text[-40:]}` must end with a period"


def entries(docstring: str) -> Iterator[tuple[int, str]]:
    """Yield the entries of a docstring's sections: the line where each begins, from 0, and its text."""
    section, line, entry = "", 0, ""
    for number, text in enumerate([*docstring.splitlines(), "end"]):
        indent = len(text) - len(text.lstrip())
        continues = indent > 4 or (indent == 4 and section in PARAGRAPHS)
        if entry and continues:
            entry += " " + text.strip()
            continue
        if entry:
            yield line, entry
        line, entry = (number, text.strip()) if section and indent == 4 else (0, "")
        if text and indent == 0:
            section = text if text in SECTIONS else ""


if __name__ == "__main__":
    sys.exit(main())
