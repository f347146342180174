"""Sum up the test reports of a tier, and fail if a test is missing, skipped without a reason, or too slow.

`check_reports.py` looks at the fast tier, `check_reports.py slow` at the slow one.
"""

from __future__ import annotations

import ast
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".nox" / "reports"
NO_REASON = ("", "unconditional skip", "Skipped")

Test = tuple[str, str]
"""A test function: its file, relative to the repository, and its name."""


TIERS = ("slow", "browser", "slurm", "cuda")
"""Marks of the tests that the fast tier leaves out; `browser` has a separate session."""
FAST_TIER_SECONDS = 800.0
"""CPU seconds that the fast tier may take, of a core as fast as the reference.

The measure of a core is rough: on one virtual EPYC the same tier came to 675 and to 387.
"""
FAST_TEST_SECONDS = 5.0
"""CPU seconds that one fast test may take there, without the fixtures that it shares with others."""
REFERENCE_SECONDS = 0.11
"""CPU seconds of `timed_workload` on a core of the reference, a Xeon of family 6, model 167."""


def main() -> int:
    """Print the reasons of skips, the problems and the totals; return 1 if there is a problem, else 0."""
    is_slow = sys.argv[1:] == ["slow"]
    reports = sorted(REPORTS.glob("slow-*.xml" if is_slow else "[!s]*.xml"))
    cases = [case for report in reports for case in ET.parse(report).iter("testcase")]
    problems = [*check_presence(cases, is_slow=is_slow), *check_skips(cases)]
    problems += [] if is_slow else check_seconds(cases)
    print("\n".join(problems))
    outcomes = Counter(outcome(case) for case in cases)
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['skipped']} skipped")
    return 1 if problems or outcomes["failed"] else 0


def check_presence(cases: Sequence[ET.Element], *, is_slow: bool) -> Iterator[str]:
    """Yield the tests of a tier that are in no report."""
    written = {test for test, marks in written_tests() if is_in_tier(marks, is_slow=is_slow)}
    for file, function in sorted(written - {reported_test(case) for case in cases}):
        yield f"missing: {file}::{function} is in no report"


def is_in_tier(marks: set[str], *, is_slow: bool) -> bool:
    """Return whether a test with these marks is certain to run in a tier, wherever it runs."""
    return marks == {"slow"} if is_slow else not marks


def check_skips(cases: Sequence[ET.Element]) -> Iterator[str]:
    """Print the reasons why tests were skipped; yield tests skipped without a reason."""
    skips = {case_name(case): reason for case in cases if (reason := skip_reason(case)) is not None}
    for reason, count in Counter(skips.values()).items():
        print(f"{count} skipped: {reason}")
    yield from (f"skipped without a reason: {case}" for case, reason in skips.items() if reason in NO_REASON)


def check_seconds(cases: Sequence[ET.Element]) -> Iterator[str]:
    """Print the cost of the fast tier; yield costs above the budget, in seconds of the reference."""
    slowness = workload_seconds() / REFERENCE_SECONDS
    seconds = {case_name(case): test_seconds(case, "test_seconds") / slowness for case in cases}
    setup = sum(test_seconds(case, "setup_seconds") for case in cases) / slowness
    total = sum(seconds.values()) + setup
    print(
        f"CPU seconds of the fast tier, on the reference: {total:.0f}; a second there is {slowness:.2f} here"
    )
    if total > FAST_TIER_SECONDS:
        yield f"too slow: the fast tier took {total:.0f} CPU seconds, of {FAST_TIER_SECONDS:.0f}"
    for case, cost in sorted(seconds.items(), key=lambda pair: -pair[1]):
        if cost > FAST_TEST_SECONDS:
            yield f"too slow: {case} took {cost:.1f} CPU seconds, of {FAST_TEST_SECONDS}: mark it slow"


def test_seconds(case: ET.Element, name: str) -> float:
    """Return the CPU seconds that `cpu_seconds.py` has recorded for a test on this machine."""
    values = [entry.get("value", "0") for entry in case.iter("property") if entry.get("name") == name]
    return sum(map(float, values))


def workload_seconds() -> float:
    """Return the CPU seconds of a fixed workload on this machine, the least of several tries."""
    return min(timed_workload() for _ in range(7))


def timed_workload() -> float:
    """Return the CPU seconds of one try."""
    start = time.process_time()
    sum(hash(str(number)) for number in range(1_000_000))
    return time.process_time() - start


def written_tests() -> Iterator[tuple[Test, set[str]]]:
    """Yield every test function of the packages and of the repository, and its marks of `TIERS`."""
    for owner in (*ROOT.glob("packages/*/"), ROOT):
        for file in sorted(owner.glob("tests/**/test_*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            marks = {mark for node in tree.body if is_pytestmark(node) for mark in tier_marks(node)}
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    function_marks = {
                        mark for decorator in node.decorator_list for mark in tier_marks(decorator)
                    }
                    yield (file.relative_to(ROOT).as_posix(), node.name), marks | function_marks


def is_pytestmark(node: ast.stmt) -> bool:
    """Return whether a statement marks all tests of its file."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def tier_marks(node: ast.AST) -> Iterator[str]:
    """Yield the marks of `TIERS` in an expression, but not those of single parameters."""
    text = ast.unparse(node)
    yield from (mark for mark in TIERS if f"pytest.mark.{mark}" in text and "pytest.param(" not in text)


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
    """Return the reason why a case was skipped, or None if it was not."""
    skipped = case.find("skipped")
    return None if skipped is None else skipped.get("message", "")


if __name__ == "__main__":
    sys.exit(main())
