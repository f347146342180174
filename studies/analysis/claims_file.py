"""The rows of docs/studies/claims.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = ROOT / "docs/studies/claims.toml"
VERDICTS = ("seen", "not seen", "undetermined", "not testable here", "implemented", "pending")
OBSERVED, (UNTESTABLE, IMPLEMENTED, PENDING) = VERDICTS[:3], VERDICTS[3:]

Row = TypeVar("Row")


class ClaimsError(Exception):
    """A file that cannot be read as claims, with its name and what would be right."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper, and which figures, equations, tables and other things it has."""

    title: str
    figures: int = 0
    equations: int = 0
    tables: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def ids(self) -> Iterator[str]:
        """Yield what must begin the id of a row: `Fig. 1`, `Eq. 1`, `Table A` and so on."""
        yield from (f"Fig. {number}" for number in range(1, self.figures + 1))
        yield from (f"Eq. {number}" for number in range(1, self.equations + 1))
        yield from (f"Table {name}" for name in self.tables)
        yield from self.others


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A page of ours, the committed tables behind it, and the command that reads or makes them."""

    page: str
    command: str
    tables: tuple[str, ...] = ()

    def missing(self) -> Iterator[str]:
        """Yield the page and tables that do not exist, and a heading that the page does not have."""
        file, _, heading = self.page.partition("#")
        yield from (place for place in (file, *self.tables) if not (ROOT / place).is_file())
        if heading and (ROOT / file).is_file() and heading not in headings(ROOT / file):
            yield self.page


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One figure, table, equation or claim of a paper, and what we say of it."""

    paper: str
    id: str
    claim: str
    verdict: str
    evidence: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    note: str = ""
    function: str = ""
    test: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimsFile:
    """What claims.toml holds."""

    papers: Mapping[str, Paper]
    evidence: Mapping[str, Evidence]
    claims: tuple[Claim, ...]

    def is_settled(self, key: str) -> bool:
        """Whether a verdict rests on this evidence, so that its page and tables must exist."""
        return any(key in claim.evidence and claim.verdict != PENDING for claim in self.claims)


def read_claims(path: Path) -> ClaimsFile:
    """Read claims.toml; raise `ClaimsError` where it is not TOML or has a key that means nothing."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ClaimsError(f"{path.name}: is no TOML: {error}") from None
    return ClaimsFile(
        papers={name: row(Paper, values, name) for name, values in content["papers"].items()},
        evidence={name: row(Evidence, values, name) for name, values in content["evidence"].items()},
        claims=tuple(row(Claim, values, values.get("id", "a claim")) for values in content["claims"]),
    )


def row(kind: type[Row], values: Mapping[str, Any], name: str) -> Row:
    """Make a row of a table of TOML, lists as tuples."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in values.keys() - set(known):
        raise ClaimsError(f"claims.toml: {name}: `{key}` must be one of {', '.join(known)}.")
    frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        return kind(**frozen)
    except TypeError as error:
        raise ClaimsError(f"claims.toml: {name}: {error}") from None


def headings(page: Path) -> set[str]:
    """Return the anchors of a Markdown page's headings, as GitHub and MyST make them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}
