"""Write the tables of docs/studies/claims.md from docs/studies/claims.toml, and check both.

    python -m studies.analysis.claims            write the page's tables
    python -m studies.analysis.claims --check    write nothing; exit status 1 if anything is wrong

claims.toml says at its top how a row is filled.
"""

from __future__ import annotations

import csv
import os
import pkgutil
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = ROOT / "docs/studies/claims.toml"
PAGE = CLAIMS.with_suffix(".md")
START, END = "<!-- rows of claims.toml -->\n", "<!-- end of rows -->\n"
VERDICTS = ("seen", "not seen", "undetermined", "not tried", "not testable here", "implemented")
OBSERVED, OPEN, IMPLEMENTED = VERDICTS[:3], VERDICTS[2:4], VERDICTS[5]
FINGERPRINTS = ("data_fingerprint", "config_fingerprint")

Row = TypeVar("Row", bound="Paper | Evidence | Claim")


class ClaimsError(Exception):
    """A file that cannot be read as claims, with its name and what would be right."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper, and which figures, equations, tables and other things it has."""

    title: str
    figures: int = 0
    equations: int = 0
    tables: Sequence[str] = ()
    others: Sequence[str] = ()

    def ids(self) -> Iterator[str]:
        """Yield what must begin the id of a row: `Fig. 1`, `Eq. 1`, `Table A` and so on."""
        yield from (f"Fig. {number}" for number in range(1, self.figures + 1))
        yield from (f"Eq. {number}" for number in range(1, self.equations + 1))
        yield from (f"Table {name}" for name in self.tables)
        yield from self.others


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A page of ours, and the committed tables behind it."""

    page: str
    tables: Sequence[str] = ()

    def missing(self) -> Iterator[str]:
        """Yield the page and tables that do not exist, and a heading that the page does not have."""
        file, _, heading = self.page.partition("#")
        yield from (place for place in (file, *self.tables) if not (ROOT / place).is_file())
        if heading and (ROOT / file).is_file() and heading not in headings(ROOT / file):
            yield self.page


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One figure, table, equation or claim of a paper, and our verdict on it."""

    paper: str
    id: str
    claim: str
    verdict: str
    evidence: Sequence[str] = ()
    note: str = ""
    run: str = ""
    """Which run would decide it, where the verdict is open."""
    was: str = ""
    """The verdict before, with `because`: what changed it."""
    because: str = ""
    function: str = ""
    test: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimsFile:
    """The content of claims.toml."""

    papers: Mapping[str, Paper]
    evidence: Mapping[str, Evidence]
    claims: Sequence[Claim]


def main(arguments: Sequence[str]) -> int:
    """Write or check; return the exit status."""
    try:
        claims = read_claims(CLAIMS)
        page = page_with("".join(sections(claims)), PAGE.read_text(encoding="utf-8"))
    except ClaimsError as error:
        print(error, file=sys.stderr)
        return 2
    wrong = [*problems(claims), *tables_without_fingerprints(ROOT / "docs/studies")]
    if "--check" not in arguments:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        wrong.append("claims.md does not say what claims.toml does: run `python -m studies.analysis.claims`.")
    print("\n".join(wrong) or "claims: all rows are as they should be")
    return 1 if wrong else 0


def read_claims(path: Path) -> ClaimsFile:
    """Read claims.toml; raise `ClaimsError` where it is not TOML or has an unknown key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ClaimsError(f"{path.name}: is no TOML: {error}") from None
    return ClaimsFile(
        papers={name: make_row(Paper, values, name) for name, values in content["papers"].items()},
        evidence={name: make_row(Evidence, values, name) for name, values in content["evidence"].items()},
        claims=[make_row(Claim, values, values.get("id", "a claim")) for values in content["claims"]],
    )


def make_row(kind: type[Row], values: Mapping[str, object], name: str) -> Row:
    """Make a row of a table of TOML; raise `ClaimsError` where it lacks a key or has one too many."""
    known = [field.name for field in fields(kind)]
    for key in values.keys() - set(known):
        raise ClaimsError(f"claims.toml: {name}: `{key}` must be one of {', '.join(known)}.")
    try:
        return kind(**values)  # type: ignore[arg-type]
    except TypeError as error:
        raise ClaimsError(f"claims.toml: {name}: {error}") from None


def page_with(tables: str, page: str) -> str:
    """Return the page with the tables between its marks."""
    before, _, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ClaimsError(f"claims.md: must have {START.strip()} and {END.strip()}, in this order.")
    return f"{before}{START}\n{tables}{END}{after}"


def sections(claims: ClaimsFile) -> Iterator[str]:
    """Yield the count of verdicts, and for each paper a fold with the claims about runs."""
    yield "## Verdicts\n\n" + table(("", *VERDICTS), verdict_counts(claims)) + "\n"
    for name, paper in claims.papers.items():
        rows = [claim for claim in claims.claims if claim.paper == name and claim.verdict != IMPLEMENTED]
        tested = [claim for claim in rows if claim.verdict in OBSERVED]
        yield f"## {paper.title}\n\n<details>\n<summary>{len(rows)} claims and verdicts</summary>\n\n"
        yield table(("", "claim", "verdict", "number", "tables"), (tested_row(row, claims) for row in tested))
        for verdict in VERDICTS[3:5]:
            yield f"\n*{verdict.capitalize()}*: {by_reason(row for row in rows if row.verdict == verdict)}.\n"
        yield "\n</details>\n\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["--"] * len(header), *rows]
    return "".join(f"|{'|'.join(line)}|\n" for line in lines)


def by_reason(rows: Iterable[Claim]) -> str:
    """Return claims with what would decide them or why no run can, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault((row.run or row.note).rstrip("."), []).append(row.id)
    return "; ".join("; ".join(ids) + (f" ({reason})" if reason else "") for reason, ids in reasons.items())


def verdict_counts(claims: ClaimsFile) -> Iterator[Sequence[str]]:
    """Yield for each paper how many rows have each verdict."""
    for name, paper in claims.papers.items():
        counts = Counter(claim.verdict for claim in claims.claims if claim.paper == name)
        yield (paper.title, *(str(counts[verdict]) for verdict in VERDICTS))


def tested_row(claim: Claim, claims: ClaimsFile) -> Sequence[str]:
    """Return a row of a claim about what is seen in runs."""
    pages = {key: os.path.relpath(claims.evidence[key].page, "docs/studies") for key in claim.evidence}
    links = (f"[{key}]({page})" for key, page in pages.items())
    number = f"{claim.note} *Run*: {claim.run}." if claim.run else claim.note
    before = f", was *{claim.was}*: {claim.because}" if claim.was else ""
    return (claim.id, claim.claim, f"**{claim.verdict}**{before}", number, ", ".join(links))


def headings(page: Path) -> set[str]:
    """Return the anchors of a Markdown page's headings, as GitHub and MyST make them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def problems(claims: ClaimsFile) -> Iterator[str]:
    """Yield a line for each thing that is wrong."""
    for (paper, name), count in Counter((claim.paper, claim.id) for claim in claims.claims).items():
        if count > 1:
            yield f"claims.toml: {paper}, {name}: must be one row, but is {count}."
    for paper, about in claims.papers.items():
        ids = [claim.id for claim in claims.claims if claim.paper == paper]
        for number in about.ids():
            if not any(re.match(re.escape(number) + r"(?!\w)", each) for each in ids):
                yield f"claims.toml: {paper}: no row is about {number}."
    used = {key for claim in claims.claims for key in claim.evidence}
    yield from (f"claims.toml: no row names [evidence.{key}]." for key in claims.evidence if key not in used)
    for claim in claims.claims:
        wrong = (*_wrong_words(claim, claims), *_wrong_places(claim, claims.evidence), *_wrong_names(claim))
        yield from (f"claims.toml: {claim.paper}, {claim.id}: {each}" for each in wrong)


def _wrong_words(claim: Claim, claims: ClaimsFile) -> Iterator[str]:
    if claim.paper not in claims.papers:
        yield f"`paper` must be one of {', '.join(claims.papers)}, but is {claim.paper!r}."
    if claim.verdict not in VERDICTS:
        yield f"`verdict` must be one of {', '.join(VERDICTS)}, but is {claim.verdict!r}."
    if claim.verdict != IMPLEMENTED and not claim.note:
        yield "`note` must give the number, or why there is none."
    if (claim.verdict in OPEN) != bool(claim.run):
        yield f"`run` must say what would decide it where the verdict is {' or '.join(OPEN)}, and only there."
    if bool(claim.was) != bool(claim.because) or claim.was == claim.verdict:
        yield "`was` must be another verdict, with `because`."
    if any("|" in text for text in (claim.id, claim.claim, claim.note, claim.run, claim.because)):
        yield "must not hold a |, which ends a cell of the page's tables."


def _wrong_places(claim: Claim, evidence: Mapping[str, Evidence]) -> Iterator[str]:
    if claim.verdict in OBSERVED and not claim.evidence:
        yield f"`evidence` must name what it is tested on, since the verdict is {claim.verdict}."
    for key in claim.evidence:
        if key not in evidence:
            yield f"{key!r} must be a table [evidence.{key}] of the file."
        else:
            yield from (f"{place} must exist." for place in evidence[key].missing())


def _wrong_names(claim: Claim) -> Iterator[str]:
    if claim.verdict != IMPLEMENTED:
        return
    if not is_public(claim.function):
        yield f"`function` must be a name of a package, as mnmt_laws.fit, but is {claim.function!r}."
    file, _, test = claim.test.partition("::")
    path = ROOT / file
    if not path.is_file() or f"def {test}(" not in path.read_text(encoding="utf-8"):
        yield f"`test` must be FILE::FUNCTION, both of the repository, but is {claim.test!r}."


def is_public(name: str) -> bool:
    """Whether a dotted name is a public one that a package of ours defines, and no module."""
    try:
        thing = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return False
    home = getattr(thing, "__module__", "")  # a module has none
    return home.startswith("mnmt_") and "._" not in name


def tables_without_fingerprints(folder: Path) -> Iterator[str]:
    """Yield a line for each run table of a folder with a row that does not say what it was trained on."""
    for file in sorted(folder.rglob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if "run" in row]
        missing = sum(not all(row.get(name) for name in FINGERPRINTS) for row in rows)
        name = file.relative_to(folder).as_posix()
        if missing:
            yield f"{name}: {missing} rows have no {' or '.join(FINGERPRINTS)}: train the runs again."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
