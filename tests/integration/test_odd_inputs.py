"""Inputs that users have and that once gave a wrong result without a word, each with its right outcome.

The packages test what lies behind each of them; here stand the commands as they are typed.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
import sentencepiece
from scipy import stats

import mnmt_data.cli
import mnmt_eval.cli
import mnmt_laws.cli

INPUTS = Path(__file__).parent / "odd_inputs"
BLEU_OF_40 = 60.77


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    def the_line(self) -> str:
        """The one line of a refusal."""
        assert (self.status, self.out) == (2, ""), self
        (line,) = self.err.splitlines()
        return line


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of ours in a folder of this test, where it may write."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    commands = {
        "mnmt-data": mnmt_data.cli.main,
        "mnmt-eval": mnmt_eval.cli.main,
        "mnmt-laws": mnmt_laws.cli.main,
    }

    def finish(line: str) -> Ended:
        monkeypatch.setattr(sys, "argv", line.split())
        with pytest.raises(SystemExit) as end:
            sys.exit(commands[sys.argv[0]]())
        return Ended(end.value.code or 0, *capsys.readouterr())

    return finish


def lines(name: str) -> list[str]:
    """The lines of one of the small files beside this test."""
    return (INPUTS / name).read_text(encoding="utf-8").splitlines()


def write(name: str, content: Iterable[str] | bytes) -> None:
    """Write lines, or bytes as they are."""
    if not isinstance(content, bytes):
        content = "".join(f"{line}\n" for line in content).encode()
    Path(name).write_bytes(content)


def bleu(ended: Ended, system: str) -> float:
    """The BLEU of a system in what `compare` printed."""
    assert ended.status == 0, ended
    return float(re.search(rf"^[\d-]* *{re.escape(system)} +(\d+\.\d+)", ended.out, re.MULTILINE)[1])


def test_one_differing_sentence_is_no_difference(run):
    changed = lines("output.de")
    changed[4] = "Unsinn steht hier"
    write("a.de", lines("output.de"))
    write("one.de", changed)
    write("reference.de", lines("reference.de"))
    ended = run("mnmt-eval compare a.de one.de --reference reference.de --task en-de --metric bleu")
    (line,) = (line for line in ended.out.splitlines() if "one.de" in line)
    assert line.startswith("1–2 ")
    assert re.search(r"\] +1\.0000 +0/39/1$", line)
    assert "----" not in ended.out  # no line between clusters


def test_language_accuracy_is_tested_exactly(run):
    english = "The old man goes for a walk with his dog through the green forest today."
    german = "Der alte Mann geht heute mit seinem Hund durch den grünen Wald spazieren."
    numbers = range(100)
    write("source.en", [f"{english} {number}" for number in numbers])
    write("reference.de", [f"{german} {number}" for number in numbers])
    write("a.de", [f"{english if number < 3 else german} {number}" for number in numbers])
    write("b.de", [f"{english if 3 <= number < 12 else german} {number}" for number in numbers])
    ended = run(
        "mnmt-eval compare a.de b.de --reference reference.de --source source.en --task en-de"
        " --metric language --language.candidates de,en"
    )
    p = float(re.search(r"b\.de.*\] +(\d\.\d+)", ended.out)[1])
    assert p == pytest.approx(stats.binomtest(3, 12).pvalue, abs=0.01)
    assert not re.search(r"b\.de.* \*", ended.out)


def test_markup_of_test_sets_is_refused(run):
    write("output.de", ["Ja"])
    write("reference.sgm", ['<refset setid="x" trglang="de">', '<doc docid="d">', '<seg id="1">Ja</seg>'])
    ended = run("mnmt-eval compare output.de --reference reference.sgm --task en-de --metric bleu")
    line = ended.the_line()
    assert "reference.sgm: is WMT's mark-up" in line
    assert "`sacrebleu -t wmt19 -l en-de --echo src`" in line


def test_a_country_for_a_language_is_refused(run):
    write("output.zh", ["今天的天气很好。", "我在读书。", "她去了学校。"] * 5)
    write("reference.zh", ["今天天气很好。", "我在看书。", "他去学校了。"] * 5)
    compare = "mnmt-eval compare output.zh --reference reference.zh --metric bleu --task"
    assert bleu(run(f"{compare} en-zh"), "output.zh") == 37.34
    assert "zh" in run(f"{compare} en-cn").the_line()


def test_subwords_left_in_are_told(run):
    write("joined.de", lines("output.de"))
    write("split.de", ["▁" + line.replace(" ", " ▁") for line in lines("output.de")])
    write("reference.de", lines("reference.de"))
    ended = run("mnmt-eval compare joined.de split.de --reference reference.de --task en-de --metric bleu")
    assert bleu(ended, "joined.de (baseline)") == BLEU_OF_40
    (warning,) = (line for line in ended.err.splitlines() if "▁" in line)
    assert "split.de" in warning


def test_scores_are_no_candidates(run):
    write(
        "best.tsv",
        ["0\tDo it because I say so.\t-0.45", "0\tDo it because I say it.\t-0.47", "1\tHello.\t-0.3"],
    )
    ended = run("mnmt-eval rerank best.tsv --metric chrf")
    assert "--column 2" in ended.the_line()


STUDY = """
name = "odd"
[data]
tasks = ["en-de"]
dev_sentences = 30
test_sentences = 30
{data}
[data.files.train]
en-de = ["{path}"]
{tables}
[data.vocab]
size = 400
"""


def pairs(made_up_text, count: int) -> list[tuple[str, str]]:
    """Made-up sentence pairs."""
    return list(zip(*(made_up_text(language, count).splitlines() for language in ("en", "de")), strict=True))


def prepare(run: Run, path: str, *, data: str = "", tables: str = "") -> Ended:
    """Prepare a study whose training text is a file."""
    write("odd.toml", STUDY.format(path=path, data=data, tables=tables).encode())
    return run("mnmt-data prepare odd.toml --jobs 1")


def test_a_table_of_four_columns_is_refused(run, made_up_text):
    numbered = enumerate(pairs(made_up_text, 300))
    write("tatoeba.tsv", [f"{n}\t{english}\t{n + 9000}\t{german}" for n, (english, german) in numbered])
    line = prepare(run, "tatoeba.tsv").the_line()
    assert line.startswith("mnmt-data: tatoeba.tsv:1: has 4 columns")
    assert 'columns."tatoeba.tsv"' in line


def test_the_column_of_a_score_is_no_side(run, made_up_text):
    scored = [
        f"{1.05 + n / 10_000:.4f}\t{src}\t{tgt}" for n, (src, tgt) in enumerate(pairs(made_up_text, 600))
    ]
    write("scored.tsv", scored)
    ended = prepare(run, "scored.tsv", tables="[data.scores]\nlaser = { column = 1, min = 1.06 }")
    assert ended.status == 0, ended
    assert "leaks: 500 pairs done" in ended.out + ended.err
    texts = Path("results/odd/data/text")
    assert all(re.match("en[a-z]", line) for line in (texts / "test.en-de.en").read_text().splitlines())
    assert all(re.match("de[a-z]", line) for line in (texts / "test.en-de.de").read_text().splitlines())


def test_line_ends_of_classic_macs_are_named(run, made_up_text):
    for language in ("en", "de"):
        write(f"mac.{language}", made_up_text(language, 300).replace("\n", "\r").encode())
    assert "CR" in prepare(run, "mac.{lang}").the_line()


def test_one_bad_character_of_a_memory_is_one_bad_unit(run, made_up_text):
    unit = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'
    units = [unit.format(*pair) for pair in pairs(made_up_text, 600)]
    write("memory.tmx", ["<tmx version='1.4'><header/><body>", *units[:300], unit.format("a&#x1F;b", "c")])
    with Path("memory.tmx").open("a", encoding="utf-8") as file:
        file.writelines(f"{unit}\n" for unit in [*units[300:], "</body></tmx>"])
    ended = prepare(run, "memory.tmx", data='on_bad_line = "skip"\nmax_bad_share = 0.1')
    assert ended.status == 0, ended
    assert re.search(r"\b1 bad|bad.*\b1\b", ended.out + ended.err)
    assert "leaks: 600 pairs done" in ended.out + ended.err


def test_a_blank_reference_is_told_before_training(run, made_up_text):
    for language in ("en", "de"):
        write(f"text.{language}", made_up_text(language, 300).encode())
        write(f"test.{language}", made_up_text(language, 40).encode())
    references = made_up_text("de", 40).splitlines()
    write("test.de", [*references[:4], "", *references[5:]])
    ended = prepare(run, "text.{lang}", data='files.test.en-de = ["test.{lang}"]')
    assert ended.status == 2
    assert "mnmt-data: test.de: pair 5 of the test set has a blank side" in ended.err


def fitted(ended: Ended, task: str, parameter: str) -> float:
    """A parameter in what `fit` printed."""
    assert ended.status == 0, ended
    return float(re.search(rf"^ *{task} +all +{parameter} +(\S+)", ended.out, re.MULTILINE)[1])


def test_scores_of_every_metric_rise(run):
    write("bleu.csv", lines("rising.csv"))
    write("spbleu.csv", [line.replace("bleu", "spbleu") for line in lines("rising.csv")])
    fit = "mnmt-laws fit {}.csv --law power --refits 0 --prior none"
    for metric in ("bleu", "spbleu"):
        ended = run(fit.format(metric))
        assert fitted(ended, "all", "alpha") == pytest.approx(0.2276, abs=1e-3)
        assert fitted(ended, "all", "l_inf") == pytest.approx(84.43, abs=0.05)


def test_perplexities_become_losses(run):
    header, *rows = lines("mixtures.csv")
    write("losses.csv", [header, *rows])
    perplexities = [f"{row.rpartition(',')[0]},{math.exp(float(row.rpartition(',')[2])):.4f}" for row in rows]
    write("perplexities.csv", [header.replace("value", "ppl"), *perplexities])
    for options in ("losses.csv", "perplexities.csv --column value=ppl"):
        ended = run(f"mnmt-laws fit {options} --law capacity --refits 0")
        assert fitted(ended, "en-de", "alpha") == pytest.approx(0.2825, abs=1e-3)
        assert fitted(ended, "en-de", "l_inf") == pytest.approx(1.504, abs=5e-3)


def test_billions_are_refused_with_their_factor(run):
    billions = [
        re.sub(r"^([^,]*,\d+),(\d+)00000000,", lambda found: f"{found[1]},{int(found[2]) / 10},", line)
        for line in lines("lengths.csv")
    ]
    write("tokens.csv", lines("lengths.csv"))
    write("billions.csv", billions)
    ask = "mnmt-laws recommend {}.csv --law share-tied --budget 1e18 --refits 0"
    assert "65.3M parameters and 2.55B tokens" in run(ask.format("tokens")).out
    line = run(ask.format("billions")).the_line()
    assert "tokens" in line
    assert "1e9" in line or "billion" in line


def test_a_table_of_one_task_gives_size_and_length(run):
    write("one-task.csv", lines("one-task.csv"))
    fit = run("mnmt-laws fit one-task.csv --law chinchilla --refits 0 --prior none")
    big_a, big_b, a, b = (fitted(fit, "all", name) for name in ("a", "b", "alpha", "beta"))
    size = (a * big_a / (b * big_b)) ** (1 / (a + b)) * (1e21 / 6) ** (b / (a + b))
    assert size == pytest.approx(1.87e9, rel=0.01)
    ended = run("mnmt-laws recommend one-task.csv --law chinchilla --budget 1e21")
    found = re.search(r"(\S+)B parameters and (\S+)B tokens", ended.out)
    assert 1e9 * float(found[1]) == pytest.approx(size, rel=0.01)
    assert 1e9 * float(found[2]) == pytest.approx(1e21 / 6 / size, rel=0.01)


def test_a_diverged_run_is_named(run):
    rows = lines("sizes.csv")
    rows[7] = "31622776,3.03674"
    write("sizes.csv", rows)
    ended = run("mnmt-laws fit sizes.csv --law power --refits 0")
    assert ended.status == 0
    (warning,) = (line for line in ended.err.splitlines() if "diverged" in line)
    assert "sizes.csv row 8" in warning


def test_an_exported_panel_is_read_with_a_size_for_each_run(run):
    header = '"Step","small - eval/loss","small - eval/loss__MIN","small - eval/loss__MAX","big - eval/loss"'
    steps = range(10)
    write("panel.csv", [header, *(f"{step},{5 - step / 100},9,9,{4.8 - step / 100}" for step in steps)])
    line = run("mnmt-laws fit panel.csv --law power").the_line()
    assert "--runs runs.csv" in line
    assert "small, big" in line
    write("runs.csv", ["run,size", "small,1e6", "big,4e6"])
    ended = run("mnmt-laws collect panel.csv --runs runs.csv --out table.csv")
    assert ended.status == 0, ended
    table = pd.read_csv("table.csv")
    assert dict(zip(table["size"], table["value"], strict=True))[1e6] == pytest.approx(4.91)


def test_a_vocabulary_with_other_ids_serves(run, made_up_text):
    for language in ("en", "de"):
        write(f"text.{language}", made_up_text(language, 300).encode())
    options = {"vocab_size": 30, "model_prefix": "own", "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(input="text.en,text.de", **options)
    assert sentencepiece.SentencePieceProcessor(model_file="own.model").pad_id() == -1
    write(
        "odd.toml",
        STUDY.format(path="text.{lang}", data="", tables="")
        .replace("size = 400", 'path = "own.model"')
        .encode(),
    )
    assert run("mnmt-data prepare odd.toml --jobs 1").status == 0
    ours = sentencepiece.SentencePieceProcessor(model_file="results/odd/data/vocab.model")
    theirs = sentencepiece.SentencePieceProcessor(model_file="own.model")
    assert [ours.pad_id(), ours.eos_id(), ours.unk_id()] == [0, 1, 2]
    unseen = [*made_up_text("de", 50).splitlines(), "Größe 12"]
    assert ours.encode(unseen, out_type=str) == theirs.encode(unseen, out_type=str)
