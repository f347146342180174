"""What can be wrong with the rows of docs/studies/claims.toml."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from studies.analysis.claims_file import (
    CLAIMS,
    IMPLEMENTED,
    OBSERVED,
    PENDING,
    ROOT,
    UNTESTABLE,
    VERDICTS,
    Claim,
    ClaimsFile,
    Evidence,
    headings,
)


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
    used = {key for claim in claims.claims for key in (*claim.evidence, *claim.next)}
    yield from (f"claims.toml: no row names [evidence.{key}]." for key in claims.evidence if key not in used)
    for claim in claims.claims:
        wrong = (
            *_wrong_words(claim, claims),
            *_wrong_places(claim, claims.evidence),
            *_wrong_links(claim),
            *_wrong_names(claim),
        )
        yield from (f"claims.toml: {claim.paper}, {claim.id}: {each}" for each in wrong)


def _wrong_words(claim: Claim, claims: ClaimsFile) -> Iterator[str]:
    if claim.paper not in claims.papers:
        yield f"`paper` must be one of {', '.join(claims.papers)}, but is {claim.paper!r}."
    if claim.verdict not in VERDICTS:
        yield f"`verdict` must be one of {', '.join(VERDICTS)}, but is {claim.verdict!r}."
    if claim.verdict in (*OBSERVED, UNTESTABLE) and not claim.note:
        yield "`note` must give the number, or why there is none."
    if any("|" in text for text in (claim.id, claim.claim, claim.note)):
        yield "must not hold a |, which ends a cell of the page's tables."


def _wrong_places(claim: Claim, evidence: Mapping[str, Evidence]) -> Iterator[str]:
    if claim.verdict in (*OBSERVED, PENDING) and not claim.evidence:
        yield f"`evidence` must name what it is tested on, since the verdict is {claim.verdict}."
    for key in (*claim.evidence, *claim.next):
        if key not in evidence:
            yield f"{key!r} must be a table [evidence.{key}] of the file."
        elif key in claim.evidence and claim.verdict != PENDING:
            yield from (
                f"{place} must exist, or the verdict be pending." for place in evidence[key].missing()
            )


def _wrong_links(claim: Claim) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)]+)\)", claim.note):
        file, _, heading = target.partition("#")
        page = (CLAIMS.parent / file).resolve()
        if not page.is_file() or (heading and heading not in headings(page)):
            yield f"the link of `note` to {target} must lead to a file and heading that exist."


def _wrong_names(claim: Claim) -> Iterator[str]:
    if claim.verdict != IMPLEMENTED:
        return
    if not is_public(claim.function):
        yield f"`function` must be a name of a package, as mnmt_laws.fit, but is {claim.function!r}."
    file, _, test = claim.test.partition("::")
    if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"):
        yield f"`test` must be FILE::FUNCTION, both of the repository, but is {claim.test!r}."


def is_public(name: str) -> bool:
    """Whether a dotted name is defined in a module, or imported there for others."""
    module, _, last = name.rpartition(".")
    defines = re.compile(rf"^(?:class|def) {last}\b|\bas {last}$|^    \"{last}\",$", re.MULTILINE)
    for source in ROOT.glob("packages/*/src"):
        place = source / module.replace(".", "/")
        files = [place.with_suffix(".py"), place / "__init__.pyi", place / "__init__.py"]
        if module and any(
            defines.search(file.read_text(encoding="utf-8")) for file in files if file.is_file()
        ):
            return True
    return False
