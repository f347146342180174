"""What the pages on data tell the reader to write works as it stands there."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from mnmt_data import prepare_study, read_study

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu", "pero", "rita")
STUDY = """
name = "page"
[data]
tasks = ["en-de"]
dev_sentences = 5
test_sentences = 5
[data.vocab]
kind = "word"
{more}
"""


def blocks(page, language):
    text = (ROOT / "docs/data" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """The distribution of the page, as pip would install it."""
    project = tomllib.loads(blocks("plugins.md", "toml")[0])["project"]
    (source,) = blocks("plugins.md", "python")
    info = tmp_path / "site" / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in project["entry-points"].items()
        )
    )
    (tmp_path / "site/acme_text.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("acme_text", None)


@pytest.mark.usefixtures("acme")
def test_readers_and_filters_of_your_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("raw").mkdir()
    lines = [f"{WORDS[row % 10]} {WORDS[row // 10]}" for row in range(100)]
    Path("raw/web.bars").write_text("".join(f"en {line}|de {line}\n" for line in lines))
    Path("raw/numbers.bars").write_text("in 1984|12345678\n")
    Path("study.toml").write_text(STUDY.format(more=blocks("plugins.md", "toml")[1]))
    report = prepare_study(read_study("study.toml"), tmp_path / "out", jobs=1).description.filters["en-de"]
    assert report.read == 101
    assert report.samples["many-digits"] == (("in 1984", "12345678"),)
    Path("raw/web.bars").write_text("no bar\n")
    with pytest.raises(Exception, match=r"raw/web\.bars:1: has no bar"):
        prepare_study(read_study("study.toml"), tmp_path / "out", jobs=1)
