"""Plans of published models print what the pages say, to the last digit: they are arithmetic."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/model/distributed.md", "docs/moe/scaling-out.md"]
PLAN = re.compile(r"^```\n(mnmt-model plan --preset [^`]*)^```\n+```text\n(.*?)^```", re.S | re.M)


def plans(page):
    """The commands of a page, as lists of words, and the sections of lines that it shows of their output."""
    for line, output in PLAN.findall((ROOT / page).read_text(encoding="utf-8")):
        yield line.replace("\\\n", " ").split(), re.split(r"^ *\.\.\.\n", output, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_a_plan_prints_what_the_page_says(tmp_path, command, page):
    shown = list(plans(page))
    assert shown
    for words, sections in shown:
        run = command(tmp_path, *words)
        assert run.returncode == 0, run.stderr
        place = 0
        for section in sections:
            assert section in run.stdout[place:]
            place += run.stdout[place:].index(section) + len(section)
