"""Sum up the test reports of the nox sessions, and fail if a test is missing or skipped without a reason."""

from __future__ import annotations

import ast
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".nox" / "reports"
NO_REASON = ("", "unconditional skip", "Skipped")

Test = tuple[str, str]
"""A test function: its file, relative to the repository, and its name."""


def main() -> int:
    """Print why tests were skipped, what is wrong, and the totals; return 1 if anything is wrong, else 0."""
    cases = [case for report in sorted(REPORTS.glob("*.xml")) for case in ET.parse(report).iter("testcase")]
    skipped = {case_name(case): reason for case in cases if (reason := skip_reason(case)) is not None}
    missing = sorted(set(expected_tests()) - {reported_test(case) for case in cases})
    unreasoned = [case for case, reason in skipped.items() if reason in NO_REASON]
    for reason, count in Counter(skipped.values()).items():
        print(f"{count} skipped: {reason}")
    for file, function in missing:
        print(f"missing: {file}::{function} is in no report")
    for case in unreasoned:
        print(f"skipped without a reason: {case}")
    outcomes = Counter(outcome(case) for case in cases)
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['skipped']} skipped")
    return 1 if missing or unreasoned or outcomes["failed"] else 0


def expected_tests() -> Iterator[Test]:
    """Yield every test function of the packages and of the repository, and at least one of each."""
    for owner in (*ROOT.glob("packages/*/"), ROOT):
        files = sorted(owner.glob("tests/**/test_*.py"))
        yield from (test for file in files for test in written_tests(file))
        if not files:
            yield (owner / "tests").relative_to(ROOT).as_posix(), "test_*"


def written_tests(file: Path) -> Iterator[Test]:
    """Yield the test functions of a file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield file.relative_to(ROOT).as_posix(), node.name


def reported_test(case: ET.Element) -> Test:
    """Return the test function that a case reports."""
    return case.get("file", ""), case.get("name", "").partition("[")[0]


def case_name(case: ET.Element) -> str:
    """Return a case's name as pytest writes it."""
    return f"{case.get('file')}::{case.get('name')}"


def outcome(case: ET.Element) -> str:
    """Return `passed`, `failed` (in the test or around it) or `skipped`."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def skip_reason(case: ET.Element) -> str | None:
    """Return why a case was skipped, or None if it was not."""
    skipped = case.find("skipped")
    return None if skipped is None else skipped.get("message", "")


if __name__ == "__main__":
    sys.exit(main())
