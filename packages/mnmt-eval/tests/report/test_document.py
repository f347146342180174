from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine
from corpora import GERMAN
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.metrics import metric
from mnmt_eval.report import page
from mnmt_eval.report.document import worst_rows

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'
WORDS = Path(page.__file__).with_name("words.js")


class References(HTMLParser):
    """What a page would load, and its data."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.loaded += [value or "" for name, value in attrs if name in ("src", "srcset", "action")]
        self.loaded += [value or "" for name, value in attrs if name == "href" and tag != "a"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def data_of(page: str) -> Any:
    result = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert result is not None
    return json.loads(result[1])


@pytest.fixture
def page(command_line: CommandLine, tmp_path: Path) -> str:
    """Two systems' translations of German, one line of which would like to run."""
    one, two = [*GERMAN.hypotheses, HOSTILE], [*GERMAN.others, "Gut."]
    done = command_line.run(
        "report",
        *(f"<one>={write(tmp_path / 'one', one)}", write(tmp_path / "two", two)),
        *("--reference", write(tmp_path / "ref", [*GERMAN.references[0], "Gut."])),
        *("--source", write(tmp_path / "src", [*GERMAN.sources, "Good."]), "--task", "en-de"),
        *("--out", tmp_path / "new" / "report", "--sentences", "4"),
    )
    assert done.status == 0, done.stderr
    index = Path(done.stdout.decode().strip())
    assert index == tmp_path / "new" / "report" / "index.html"
    return index.read_text(encoding="utf-8")


def test_the_page_needs_nothing_from_outside_and_runs_no_text(page: str) -> None:
    result = References()
    result.feed(page)
    assert result.loaded == []
    assert result.scripts == 2
    assert "url(" not in page
    assert "@import" not in page
    assert HOSTILE not in page
    assert "&lt;one&gt;" in page
    (text,) = data_of(page)["texts"]
    assert HOSTILE in text["systems"][0]["translations"]


def test_the_page_holds_the_sentences_that_some_system_did_worst_on(page: str) -> None:
    (text,) = data_of(page)["texts"]
    assert (text["total"], text["task"], len(text["numbers"])) == (8, "en-de", 4)
    chrf = metric("chrf", target="de")
    references, sources = [*GERMAN.references[0], "Gut."], [*GERMAN.sources, "Good."]
    translations = [*GERMAN.hypotheses, HOSTILE], [*GERMAN.others, "Gut."]
    for system, lines in zip(text["systems"], translations, strict=True):
        statistics = chrf.sentence_statistics(lines, [references], sources)
        scores = chrf.sentence_scores(statistics)
        filled = [number for number, line in enumerate(lines) if line or references[number]]
        assert min(filled, key=scores.__getitem__) + 1 in text["numbers"]
        for number, score in zip(text["numbers"], system["sentence_scores"], strict=True):
            expected = pytest.approx(scores[number - 1], abs=0.005) if number - 1 in filled else None
            assert score == expected
        assert system["scores"]["chrf"]["value"] == chrf.corpus(statistics).value
        assert system["translations"] == [lines[number - 1] for number in text["numbers"]]
    assert text["sources"] == [sources[number - 1] for number in text["numbers"]]


def test_runs_are_reported_with_all_their_tasks(
    command_line: CommandLine, scored_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(scored_run, scored_run.with_name("other"))
    done = command_line.run(
        "report", scored_run.parent, "--out", tmp_path / "r", "--metric", "ter", "--worst-by", "ter"
    )
    assert done.status == 0, done.stderr
    data = data_of((tmp_path / "r" / "index.html").read_text(encoding="utf-8"))
    assert [text["task"] for text in data["texts"]] == ["xx-aa", "xx-bb"]
    assert data["higher_is_better"] is False
    assert [system["name"] for system in data["texts"][0]["systems"]] == ["other", "tiny-run"]


@given(
    st.integers(1, 4).flatmap(
        lambda systems: st.lists(
            st.lists(st.integers(0, 9), min_size=systems, max_size=systems), min_size=1, max_size=12
        )
    ),
    st.integers(1, 12),
)
def test_each_systems_worst_sentences_are_among_the_chosen(scores: list[list[int]], count: int) -> None:
    badness = np.array(scores, dtype=np.float64).T
    selection = worst_rows(badness, count)
    systems, sentences = badness.shape
    assert len(selection) == min(count, sentences)
    assert selection.tolist() == sorted(set(selection.tolist()))
    share = count // systems
    for own in badness:
        worst = np.argsort(-own, kind="stable")[:share]
        assert set(worst.tolist()) <= set(selection.tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--worst-by", "ter"], "`worst_by` must be one of the metrics, bleu, chrf, but is 'ter'."),
        (["--sentences", "0"], "`sentences` must be at least 1, but is 0."),
    ],
)
def test_a_mistake_is_one_line(
    command_line: CommandLine, tmp_path: Path, options: list[str], message: str
) -> None:
    one = write(tmp_path / "one", ["a"])
    done = command_line.run(
        "report", one, "--reference", one, "--task", "en-de", "--out", tmp_path / "r", *options
    )
    assert (done.status, done.stderr) == (2, f"mnmt-eval: {message}\n")
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("one", "two", "marked"),
    [
        ("the dog sleeps", "the dog sleeps", (["the", " ", "dog", " ", "sleeps"], [], [])),
        ("the dog sleeps", "the cat sleeps", (["the", " ", "dog", " ", "sleeps"], ["dog"], ["cat"])),
        ("a b c d", "b d e", (["a", " ", "b", " ", "c", " ", "d"], ["a", "c"], ["e"])),
        (
            "打开 File 菜单",
            "打开文件菜单",
            (["打", "开", " ", "File", " ", "菜", "单"], ["File"], ["文", "件"]),
        ),
        ("", "x", ([], [], ["x"])),
        ("don't stop.", "don't", (["don't", " ", "stop", "."], ["stop", "."], [])),
    ],
)
def test_words_that_only_one_line_has_are_marked(
    one: str, two: str, marked: tuple[list[str], list[str], list[str]]
) -> None:
    program = WORDS.read_text(encoding="utf-8") + (
        "const [a, b] = JSON.parse(process.argv[1]).map(splitWords);"
        "const [m, n] = differingWords(a, b);"
        "const marked = (words, marks) => words.filter((word, i) => marks[i] && word.trim());"
        "console.log(JSON.stringify([a, marked(a, m), marked(b, n)]));"
    )
    done = subprocess.run(["node", "-e", program, json.dumps([one, two])], capture_output=True, check=True)
    assert json.loads(done.stdout) == list(marked)


ACT = """
<script>
const form = document.querySelector("form");
const heads = () => [...document.querySelectorAll(".card .head span:first-child")];
const numbers = () => heads().map((head) => head.textContent);
const seen = [numbers()];
for (const [name, value] of [["order", "best"], ["order", "text"], ["system", "0"], ["symptom", "empty"]]) {
  form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
  seen.push(numbers());
}
document.title = JSON.stringify(seen);
</script>
"""


def test_translations_into_another_language_are_marked_where_languages_are_measured(
    command_line: CommandLine, tmp_path: Path
) -> None:
    out = ["Der Hund schläft heute im Garten.", "The dog is sleeping in the garden today.", "", "Gut."]
    ref = ["Der Hund schläft heute im Garten.", "Der Hund schläft heute im Garten.", "", "Gut."]
    arguments = (
        *("report", write(tmp_path / "out", out), "--reference", write(tmp_path / "ref", ref)),
        *("--task", "en-de", "--out", tmp_path / "report"),
    )
    for metrics, expected in (("chrf", []), ("chrf,language", [1])):
        flags = ("--metric", metrics, "--language.candidates", "de,en")
        assert command_line.run(*arguments, *flags).status == 0
        page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
        signs = data_of(page)["texts"][0]["systems"][0]["symptoms"]
        assert [row for row, result in enumerate(signs) if "wrong language" in result] == expected
        assert ("<option>wrong language</option>" in page) == bool(expected)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_sorts_and_filters(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{ACT}</body>"), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--dump-dom", str(tmp_path / "page.html")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    title = re.search(r"<title>(.*?)</title>", shown)
    assert title is not None
    text = data_of(page)["texts"][0]
    one, two = text["systems"]
    numbers = [f"sentence {number}" for number in text["numbers"]]
    scores = two["sentence_scores"]
    worst_first = [numbers[row] for row in sorted(range(4), key=lambda row: scores[row])]
    best_first = [numbers[row] for row in sorted(range(4), key=lambda row: -scores[row])]
    empty = [number for number, signs in zip(numbers, one["symptoms"], strict=True) if "empty" in signs]
    assert json.loads(title[1]) == [worst_first, best_first, numbers, numbers, empty]
    assert empty
