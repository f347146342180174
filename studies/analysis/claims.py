"""Write the tables of docs/studies/claims.md from docs/studies/claims.toml, and check both.

    python -m studies.analysis.claims            write the page's tables
    python -m studies.analysis.claims --check    write nothing; exit status 1 if anything is wrong
    python -m studies.analysis.claims --open     list the rows that have no verdict yet, or more to come

claims.toml says at its top how a row is filled. The check needs nothing but Python: no package is imported.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from studies.analysis.claims_check import problems
from studies.analysis.claims_file import (
    CLAIMS,
    IMPLEMENTED,
    PENDING,
    ROOT,
    VERDICTS,
    Claim,
    ClaimsError,
    ClaimsFile,
    read_claims,
)

PAGE = CLAIMS.with_suffix(".md")
START, END = "<!-- rows of claims.toml -->\n", "<!-- end of rows -->\n"


def main(arguments: Sequence[str]) -> int:
    """Write, check or list; return the exit status."""
    try:
        claims = read_claims(CLAIMS)
        page = page_with("".join(sections(claims)), PAGE.read_text(encoding="utf-8"))
    except ClaimsError as error:
        print(error, file=sys.stderr)
        return 2
    if "--open" in arguments:
        print("\n".join(open_rows(claims)))
        return 0
    wrong = list(problems(claims))
    if "--check" not in arguments:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        wrong.append("claims.md does not say what claims.toml does: run `python -m studies.analysis.claims`.")
    print("\n".join(wrong) or "claims: all rows are as they should be")
    return 1 if wrong else 0


def page_with(tables: str, page: str) -> str:
    """Return the page with the tables between its marks."""
    before, _, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ClaimsError(f"claims.md: must have {START.strip()} and {END.strip()}, in this order.")
    return f"{before}{START}\n{tables}{END}{after}"


def sections(claims: ClaimsFile) -> Iterator[str]:
    """Yield the count of verdicts, the two tables of each paper, and the list of evidence."""
    yield "## Verdicts\n\n" + table(("", *VERDICTS), verdict_counts(claims)) + "\n"
    for name, paper in claims.papers.items():
        rows = [claim for claim in claims.claims if claim.paper == name]
        tested = [claim for claim in rows if claim.verdict != IMPLEMENTED]
        yield f"## {paper.title}\n\n"
        rows_of_tested = (tested_row(claim, claims) for claim in tested)
        yield table(("", "claim", "verdict", "where", "what we found"), rows_of_tested)
        yield "\nEquations, definitions and set-up, as public names with the test that holds them:\n\n"
        built = (claim for claim in rows if claim.verdict == IMPLEMENTED)
        yield table(("", "what", "name", "test", "remark"), map(implemented_row, built)) + "\n"
    yield "## Where to find the evidence\n\n"
    yield table(("", "page", "tables", "command"), evidence_rows(claims)) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["--"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def verdict_counts(claims: ClaimsFile) -> Iterator[Sequence[str]]:
    """Yield for each paper how many rows have each verdict."""
    for name, paper in claims.papers.items():
        counts = Counter(claim.verdict for claim in claims.claims if claim.paper == name)
        yield (paper.title, *(str(counts[verdict]) for verdict in VERDICTS))


def tested_row(claim: Claim, claims: ClaimsFile) -> Sequence[str]:
    """Return a row of a claim about what is seen in runs."""
    places = {key: claims.evidence[key].page for key in claim.evidence if claims.is_settled(key)}
    where = (f"[{key}]({from_page(places[key])})" if key in places else key for key in claim.evidence)
    remarks = [claim.note, f"To come: {', '.join(claim.next)}." if claim.next else ""]
    return (claim.id, claim.claim, f"**{claim.verdict}**", ", ".join(where) or "–", " ".join(remarks).strip())


def implemented_row(claim: Claim) -> Sequence[str]:
    """Return a row of something that is computed, not observed."""
    return (claim.id, claim.claim, f"`{claim.function}`", f"`{claim.test}`", claim.note)


def evidence_rows(claims: ClaimsFile) -> Iterator[Sequence[str]]:
    """Yield the page, tables and command of each kind of evidence, with links where a verdict rests on it."""
    for key, evidence in claims.evidence.items():
        link = link_to if claims.is_settled(key) else "`{}`".format
        yield (key, link(evidence.page), "<br>".join(map(link, evidence.tables)), f"`{evidence.command}`")


def link_to(place: str) -> str:
    """Return a link from the page to a file under docs/, and the name of another."""
    is_page = place.startswith("docs/")
    return f"[{place.removeprefix('docs/')}]({from_page(place)})" if is_page else f"`{place}`"


def from_page(place: str) -> str:
    """Return the path to a place of the repository from the folder of the page."""
    return os.path.relpath(ROOT / place, PAGE.parent)


def open_rows(claims: ClaimsFile) -> Iterator[str]:
    """Yield what is left to be filled in: evidence that is complete first says so."""
    for key, evidence in claims.evidence.items():
        is_there = "is there" if not list(evidence.missing()) else "to come"
        for claim in claims.claims:
            if key in claim.next or (claim.verdict == PENDING and key in claim.evidence):
                yield f"{key} ({is_there}): {claim.paper}, {claim.id}: {claim.claim}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
