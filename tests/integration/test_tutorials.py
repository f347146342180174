"""The tutorials can be followed: what they tell the reader to type runs, and prints what they say."""

import contextlib
import io
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mnmt_data import Mixture, Ragged, Shard, write_segment

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = [
    "docs/data/mixing.md",
    "docs/eval/metrics.md",
    "docs/laws/own-law.md",
    "docs/laws/tutorial.md",
    "docs/laws/uncertainty.md",
    "docs/moe/own-layer.md",
    "examples/README.md",
    "packages/mnmt-laws/README.md",
    "packages/mnmt-moe-ext/README.md",
]
COMMANDS = [
    "docs/data/preparing.md",
    "docs/eval/from-nothing.md",
    "docs/model/distributed.md",
    "docs/model/training.md",
    "docs/moe/index.md",
]
BLOCK = re.compile(
    r"(?P<before>[^\n]*)\n+```(?P<language>\w*)\n(?P<text>.*?)^```", flags=re.DOTALL | re.MULTILINE
)
NOT_RUN = "<!-- not run by tests:"
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?%?")
FAST = ("docs/moe/own-layer.md", "docs/data/mixing.md")
"""Pages in the fast tier."""
SMALL = {
    "batch_tokens": 512,
    "checkpoint_every": 4,
    "concepts": 100,
    "cooldown_steps": 6,
    "d_ff": 32,
    "d_model": 16,
    "dev_sentences": 12,
    "steps": 12,
    "test_sentences": 12,
    "train_sentences": 2000,
    "warmup_steps": 2,
}
"""What a study's keys are set to where a page gives them larger values."""
SMALL_VOCABULARY = 300


def with_slow(pages):
    """The pages as parameters, whole tutorials in the slow tier."""
    return [page if page in FAST else pytest.param(page, marks=pytest.mark.slow) for page in pages]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page, with the line above it."""

    before: str
    language: str
    text: str

    @property
    def is_run(self):
        return NOT_RUN not in self.before


def blocks(page):
    """The blocks of a page, in order."""
    matches = BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    return [Block(**match.groupdict()) for match in matches]


def words_and_numbers(text):
    """The text without its numbers and spaces, and the numbers with how far each may be off by rounding."""
    numbers = [number.rstrip("%").replace(",", "") for number in NUMBER.findall(text)]
    places = [10.0 ** -len(number.partition("e")[0].partition(".")[2]) for number in numbers]
    return " ".join(NUMBER.sub("#", text).split()), [float(number) for number in numbers], places


def check_output(printed, expected):
    """Compare word by word, and numbers to two units of their last place: processors round differently."""
    printed_words, values, _ = words_and_numbers(printed)
    expected_words, expected_values, places = words_and_numbers(expected)
    assert printed_words == expected_words
    for value, expected_value, place in zip(values, expected_values, places, strict=True):
        assert value == pytest.approx(expected_value, rel=1e-3, abs=2 * place)


def example_names(folder):
    """What snippets take for granted: training data, and the translations of two systems."""
    shards = {task: write_shard(folder / task) for task in ("en-de", "en-zh")}
    references = ["the cat sat on the mat", "a dog barked at the old moon", "it rains"]
    return {
        "shards": shards,
        "mixture": Mixture({"en-de": 0.3, "en-zh": 0.7}),
        "sources": ["die Katze saß auf der Matte", "ein Hund bellte den alten Mond an", "es regnet"],
        "references": references,
        "hypotheses": ["the cat sat on a mat", "a dog barks at the moon", "it rains"],
        "others": ["cat mat", "dog moon", "rain"],
    }


def write_shard(folder):
    """Write 500 pairs of 10 to 19 tokens a side."""
    folder.mkdir(parents=True)
    rows = [np.arange(3, 13 + number % 10) for number in range(500)]
    write_segment(folder / "00000.arrow", Ragged.from_rows(rows), Ragged.from_rows(rows[::-1]))
    return Shard.open(folder)


@pytest.mark.parametrize("page", with_slow(SNIPPETS))
def test_snippets_print_what_the_page_says(tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names, page_blocks = {"__name__": "tutorial", **example_names(tmp_path / "examples")}, blocks(page)
    for block, following in zip(page_blocks, [*page_blocks[1:], None], strict=True):
        if block.language != "python" or not block.is_run:
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.text, page, "exec"), names)
        if following is not None and following.language == "text":
            check_output(printed.getvalue(), following.text)


def shrink(study):
    """The same study with small models, few steps and a small vocabulary."""

    def smaller(match):
        key, value = match.groups()
        return f"{key} = {min(int(value), SMALL[key])}"

    small = re.sub(rf"\b({'|'.join(SMALL)}) = (\d[\d_]*)", smaller, study)
    # Made-up sentences are in no language, and differ in their digits alone.
    small = re.sub(r"\b(language_id|near_duplicates) = true", r"\1 = false", small)
    return re.sub(r"^size = [\d_]{4,}", f"size = {SMALL_VOCABULARY}", small, flags=re.MULTILINE)


def write_corpora(folder, text):
    """Write text for the corpora that the pages name."""
    for corpus, tasks in {"libreoffice-help": ["en-de", "en-es"], "mine": ["en-de", "en-fr"]}.items():
        place = folder / "corpora" / corpus
        place.mkdir(parents=True)
        for task in tasks:
            for language in task.split("-"):
                (place / f"train.{task}.{language}").write_text(text(language, 3000), encoding="utf-8")
    (folder / "new.en").write_text(text("en", 3), encoding="utf-8")
    (folder / "apertium.es").write_text(text("es", SMALL["test_sentences"]), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run(tmp_path, monkeypatch, command, made_up_text, page):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PATH", f"{Path(shutil.which('mnmt-data')).parent}:/usr/bin:/bin")
    write_corpora(tmp_path, made_up_text)
    (tmp_path / "studies").mkdir()
    for block in blocks(page):
        if not block.is_run:
            continue
        name = re.search(r'^name = "(\w+)"', block.text)
        if block.language == "toml" and name:
            path = tmp_path / f"studies/{name.group(1)}.toml"
            path.write_text(shrink(block.text), encoding="utf-8")
        elif block.language == "python":
            check_run(command(tmp_path, sys.executable, "-c", block.text))
        elif block.language == "" and re.match(r"(mnmt-|torchrun)", block.text):
            check_run(command(tmp_path, "bash", "-ec", block.text))


def check_run(run):
    assert run.returncode == 0, f"{run.args[-1]}{run.stderr}"


@pytest.mark.slow
def test_the_first_page_prints_what_its_table_gives(tmp_path, command):
    page = blocks("README.md")
    table, answer = (
        next(block.text for block in page if block.language == language) for language in ("csv", "text")
    )
    (asked,) = (block.text for block in page if block.text.startswith("mnmt-laws recommend"))
    (tmp_path / "runs.csv").write_text(table, encoding="utf-8")
    run = command(tmp_path, *shlex.split(asked))
    assert run.returncode == 0, run.stderr
    check_output("\n".join(run.stdout.splitlines()[:4]), answer)
