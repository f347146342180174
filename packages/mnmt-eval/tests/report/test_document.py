from __future__ import annotations

import html
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
from text_files import write

from mnmt_eval.metrics import metric
from mnmt_eval.report import page
from mnmt_eval.report.document import rows_to_read

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


def data_of(page: str) -> Any:
    result = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert result is not None
    return json.loads(result[1])


@pytest.fixture
def page(command_line: CommandLine, tmp_path: Path) -> str:
    """Two systems' translations of German, one line of which would like to run."""
    one, two = [*GERMAN.hypotheses, HOSTILE], [*GERMAN.others, "Gut."]
    done = command_line.run(
        "compare",
        *(f"<one>={write(tmp_path / 'one', one)}", write(tmp_path / "two", two)),
        *("--reference", write(tmp_path / "ref", [*GERMAN.references[0], "Gut."])),
        *("--source", write(tmp_path / "src", [*GERMAN.sources, "Good."]), "--task", "en-de"),
        *("--page", tmp_path / "new" / "report", "--sentences", "4"),
    )
    assert done.status == 0, done.stderr
    index = tmp_path / "new" / "report" / "index.html"
    first, *remarks = done.stderr.splitlines()
    assert first == f"wrote {index}"
    page = index.read_text(encoding="utf-8")
    assert [html.unescape(each) for each in re.findall('<p class="remark">(.*)</p>', page)] == remarks
    assert "lines are blank" in remarks[0]
    return page


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


def test_the_page_holds_scores_of_all_sentences_and_some_to_read(page: str) -> None:
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
        for row, score in enumerate(system["sentence_scores"]):
            assert score == (pytest.approx(scores[row], abs=0.005) if row in filled else None)
        assert system["translations"] == [lines[number - 1] for number in text["numbers"]]
    assert text["sources"] == [sources[number - 1] for number in text["numbers"]]


def test_the_table_has_what_compare_prints(page: str, command_line: CommandLine, tmp_path: Path) -> None:
    done = command_line.run(
        "compare",
        *(f"<one>={tmp_path / 'one'}", tmp_path / "two", "--reference", tmp_path / "ref"),
        *("--source", tmp_path / "src", "--task", "en-de", "--json"),
    )
    (comparison,) = json.loads(done.stdout)["comparisons"]
    tables = re.findall(r'<table class="scores ranking">(.*?)</table>', page, re.DOTALL)
    for table, each in zip(tables, comparison["metrics"], strict=True):
        cells = re.sub(r"<[^>]+>", " ", table)
        one, two = each["systems"]
        against = two["against_baseline"]
        shown = [one["value"], *one["interval"], two["value"], *two["interval"]]
        assert all(f" {value:.2f} " in cells for value in shown)
        assert all(f" {value:+.2f} " in cells for value in [against["difference"], *against["interval"]])
        assert f" {against['corrected_p_value']:.4f} " in cells
        assert "{wins:,}/{ties:,}/{losses:,}".format(**against) in cells


def test_groups_are_tables_and_filters(page: str, command_line: CommandLine, tmp_path: Path) -> None:
    files = [
        tmp_path / "two",
        tmp_path / "ref",
        "--reference",
        tmp_path / "ref",
        "--source",
        tmp_path / "src",
    ]
    options = ("--task", "en-de", "--metric", "chrf")
    done = command_line.run("compare", *files, *options, "--by", "thirds", "--json")
    (metric_of_all,) = json.loads(done.stdout)["comparisons"][0]["metrics"]
    for by, name in (("thirds", "group"), ("length", "length")):
        done = command_line.run("compare", *files, *options, "--by", by, "--page", tmp_path / by)
        assert done.status == 0, done.stderr
        written = (tmp_path / by / "index.html").read_text(encoding="utf-8")
        buckets = data_of(written)["texts"][0]["buckets"]
        assert set(buckets) == {"length", name}
        assert written.count('<table class="scores groups">') == 1
        assert f"&amp;{name}=" in written
        if by == "thirds":
            groups = [system["groups"] for system in metric_of_all["systems"]]
            for place, bucket in enumerate(buckets["group"]["buckets"]):
                assert bucket["values"] == [of_system[place]["value"] for of_system in groups]
                assert (bucket["name"], bucket["count"]) == (
                    groups[0][place]["group"],
                    groups[0][place]["sentences"],
                )
            corrected = groups[1][0]["against_baseline"]["corrected_p_value"]
            assert f"{corrected:.4f}" in written.partition("groups")[2]
    assert 'class="scores groups"' not in page


def test_runs_are_reported_with_all_their_tasks(
    command_line: CommandLine, scored_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(scored_run, scored_run.with_name("other"))
    done = command_line.run("compare", scored_run.parent, "--page", tmp_path / "r", "--metric", "ter")
    assert done.status == 0, done.stderr
    written = (tmp_path / "r" / "index.html").read_text(encoding="utf-8")
    means = written[written.index('class="scores means"') :].partition("</table>")[0]
    assert '<td data-label="metric">ter (lower is better)</td>' in means
    assert re.findall(r'<th scope="row">(.*?)</th>', means) == ["other", "tiny-run"]
    assert '<td data-label="difference">+0.00 <small>' in means
    data = data_of(written)
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
def test_each_systems_worst_sentences_and_their_disagreements_are_among_the_chosen(
    scores: list[list[int]], count: int
) -> None:
    badness = np.array(scores, dtype=np.float64).T
    is_short = np.arange(len(scores)) % 3 == 1
    selection = rows_to_read(badness, count, is_short)
    systems, sentences = badness.shape
    assert len(selection) == min(count, sentences)
    assert selection.tolist() == sorted(set(selection.tolist()))
    gaps = np.where(is_short, -1, np.ptp(badness, axis=0))
    lists = badness if systems == 1 else np.vstack([badness, gaps])
    share = count // len(lists)
    for own in lists:
        worst = np.argsort(-own, kind="stable")[:share]
        assert set(worst.tolist()) <= set(selection.tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "month"], "`--by` must be one of origin, length, eighths, thirds, but is 'month'."),
        (["--losses"], "one: only runs have losses; leave out --losses."),
        (["--worst-by", "ter"], "`--worst-by` must be one of the metrics, bleu, chrf, but is 'ter'."),
        (["--sentences", "0"], "`--sentences` must be at least 1, but is 0."),
        (["--baseline", "two"], "`--baseline` must be one of one, but is 'two'."),
    ],
)
def test_a_mistake_is_one_line(
    command_line: CommandLine, tmp_path: Path, options: list[str], message: str
) -> None:
    one = write(tmp_path / "one", ["a"])
    done = command_line.run(
        "compare", one, "--reference", one, "--task", "en-de", "--page", tmp_path / "r", *options
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


def test_translations_into_another_language_are_marked_where_languages_are_measured(
    command_line: CommandLine, tmp_path: Path
) -> None:
    out = ["Der Hund schläft heute im Garten.", "The dog is sleeping in the garden today.", "", "Gut."]
    ref = ["Der Hund schläft heute im Garten.", "Der Hund schläft heute im Garten.", "", "Gut."]
    arguments = (
        *("compare", write(tmp_path / "out", out), "--reference", write(tmp_path / "ref", ref)),
        *("--task", "en-de", "--page", tmp_path / "report"),
    )
    for metrics, expected in (("chrf", []), ("chrf,language", [1])):
        flags = ("--metric", metrics, "--language.candidates", "de,en")
        assert command_line.run(*arguments, *flags).status == 0
        page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
        signs = data_of(page)["texts"][0]["systems"][0]["symptoms"]
        assert [row for row, result in enumerate(signs) if "wrong language" in result] == expected
        assert ("wrong language" in data_of(page)["symptoms"]) == bool(expected)
        counts = data_of(page)["texts"][0]["systems"][0]["symptom_counts"]
        assert counts.get("wrong language", 0) == len(expected)
