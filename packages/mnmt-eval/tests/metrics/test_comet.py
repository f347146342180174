from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from corpora import GERMAN

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import CometConfig, Metric, MetricConfig, metric

VERSION = "2.2.7"

# Speaks the command line of unbabel-comet 2.2: its options, its checks, and what it prints and writes.
COMET_SCORE = """
import argparse
import json
import sys

parser = argparse.ArgumentParser(prog="comet-score")
parser.add_argument("-s", "--sources")
parser.add_argument("-t", "--translations", nargs="+")
parser.add_argument("-r", "--references")
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--gpus", type=int, default=1)
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--only_system", action="store_true")
parser.add_argument("--to_json", default="")
parser.add_argument("--model", default="Unbabel/wmt22-comet-da")
cfg = parser.parse_args()

def read(path):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file.readlines()]

if cfg.sources is None:
    parser.error("You must specify a source (-s)")
if cfg.references is None and "qe" not in cfg.model:
    parser.error(f"{cfg.model} requires -r/--references or -d/--sacrebleu_dataset.")
if cfg.model == "no/such-model":
    raise KeyError(f"Model '{cfg.model}' not supported by COMET.")
print("Seed set to 1", file=sys.stderr)
columns = {"src": read(cfg.sources)}
columns["mt"] = read(cfg.translations[0])
if cfg.references is not None:
    columns["ref"] = read(cfg.references)
segments = [dict(zip(columns, row)) for row in zip(*columns.values())]
for segment in segments:
    texts = [segment[name] for name in columns]
    segment["COMET"] = sum(len(text) * 3**i for i, text in enumerate(texts)) / 1000
if not cfg.only_system:
    for i, segment in enumerate(segments):
        print(f"{cfg.translations[0]}\\tSegment {i}\\tscore: {segment['COMET']:.4f}")
print(f"{cfg.translations[0]}\\tscore: {sum(s['COMET'] for s in segments) / len(segments):.4f}")
if cfg.to_json:
    with open(cfg.to_json, "w", encoding="utf-8") as file:
        json.dump({cfg.translations[0]: segments}, file, ensure_ascii=False, indent=4)
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of an environment in which something like unbabel-comet is installed."""
    packages = tmp_path / "environment/packages"
    (packages / "comet/cli").mkdir(parents=True)
    (packages / "comet/cli/score.py").write_text(COMET_SCORE, encoding="utf-8")
    info = packages / f"unbabel_comet-{VERSION}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: unbabel-comet\nVersion: {VERSION}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    path = tmp_path / "environment/python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def comet(num_references: int = 1, **options: object) -> Metric:
    config = CometConfig(**options)  # type: ignore[arg-type]
    return metric("comet", target="de", config=MetricConfig(num_references=num_references, comet=config))


def expected(*columns: list[str]) -> list[float]:
    rows = zip(*columns, strict=True)
    return [sum(len(text.strip()) * 3**i for i, text in enumerate(row)) / 1000 for row in rows]


def test_scores_are_computed_by_the_other_environment(python: Path) -> None:
    scorer = comet(python=python, model="Unbabel/wmt20-comet-da")
    statistics = scorer.sentence_statistics(GERMAN.hypotheses, GERMAN.references[:1], GERMAN.sources)
    scores = expected(GERMAN.sources, GERMAN.hypotheses, GERMAN.references[0])
    assert scorer.sentence_scores(statistics).tolist() == scores
    assert scorer.corpus(statistics).value == pytest.approx(sum(scores) / len(scores))
    assert scorer.signature == f"nrefs:1|model:Unbabel/wmt20-comet-da|version:unbabel-comet-{VERSION}"


def test_a_model_may_need_no_references(python: Path) -> None:
    scorer = comet(0, python=python, model="Unbabel/wmt22-cometkiwi-qe")
    statistics = scorer.sentence_statistics(GERMAN.hypotheses, [], GERMAN.sources)
    assert scorer.sentence_scores(statistics).tolist() == expected(GERMAN.sources, GERMAN.hypotheses)
    assert scorer.signature.startswith("nrefs:0|")


def test_lines_stay_lines(python: Path) -> None:
    texts = ["a\rb", " c\x0bd ", "e\u2028f"]
    scorer = comet(python=python)
    statistics = scorer.sentence_statistics(texts, [texts], texts)
    assert scorer.sentence_scores(statistics).tolist() == expected(texts, texts, texts)


def test_the_model_by_default_is_named(python: Path) -> None:
    assert "|model:Unbabel/wmt22-comet-da|" in comet(python=python).signature


@pytest.mark.parametrize(
    ("model", "num_references", "message"),
    [
        ("no/such-model", 1, r"python failed: KeyError: .*'no/such-model' not supported by COMET"),
        (None, 0, r"python failed: comet-score: error: Unbabel/wmt22-comet-da requires -r/--references"),
    ],
)
def test_what_the_other_environment_complains_of_is_told(
    python: Path, model: str | None, num_references: int, message: str
) -> None:
    scorer = comet(num_references, python=python, model=model)
    with pytest.raises(EvalError, match=message) as caught:
        scorer.score(GERMAN.hypotheses, GERMAN.references[:num_references], GERMAN.sources)
    assert "\n" not in str(caught.value)


def test_a_python_without_comet_is_told() -> None:
    with pytest.raises(EvalError, match=r"failed: .*unbabel-comet"):
        _ = comet(python=Path(sys.executable)).signature


def test_comet_needs_sources(python: Path) -> None:
    with pytest.raises(EvalError, match=r"comet: must have the sources, but has none\."):
        comet(python=python).score(GERMAN.hypotheses[:6], [GERMAN.references[0][:6]])


def to_json(path: Path, *systems: list[str]) -> None:
    columns = zip(GERMAN.sources, *systems, GERMAN.references[0], strict=True)
    files: dict[str, list[dict[str, object]]] = {f"system{i}": [] for i in range(len(systems))}
    for line, (src, *translations, ref) in enumerate(columns):
        for i, mt in enumerate(translations):
            segment = {"src": src, "mt": mt.strip(), "ref": ref, "COMET": 0.5 + i + line / 100}
            files[f"system{i}"].append(segment)
    path.write_text(json.dumps(files, ensure_ascii=False, indent=4), encoding="utf-8")


def test_scores_are_read_from_json_by_what_was_scored(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    to_json(path, GERMAN.hypotheses, GERMAN.others)
    scorer = comet(scores=path, model="Unbabel/XCOMET-XL")
    statistics = scorer.sentence_statistics(GERMAN.others, GERMAN.references[:1], GERMAN.sources)
    assert scorer.sentence_scores(statistics).tolist() == [1.5 + line / 100 for line in range(7)]
    with pytest.raises(
        EvalError, match=r"must hold scores of this output, but holds those of system0, system1\."
    ):
        scorer.score(GERMAN.references[1], GERMAN.references[:1], GERMAN.sources)


def test_scores_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    path.write_text("".join(f"0.{line}\n" for line in range(7)), encoding="utf-8")
    scorer = comet(scores=path)
    score = scorer.score(GERMAN.hypotheses, GERMAN.references[:1], GERMAN.sources)
    assert score.value == pytest.approx(0.3)
    assert score.signature.startswith("nrefs:1|model:unstated|scores:")


def test_the_signature_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    signatures = set()
    for text in ("1\n", "2\n"):
        path.write_text(text, encoding="utf-8")
        signatures.add(comet(scores=path).signature)
    assert len(signatures) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5\n", r"scores: must have a score for each of 7 sentences, but has 1\."),
        ("0.5\nhalf\n", r"scores:2: must be a score, but is 'half'\."),
        ("0.5\n" * 6 + "nan\n", r"comet: must give finite scores, but gives nan for sentence 7\."),
        ("{}", r"must hold scores of this output, but holds those of none\."),
        ('{"a": [{"mt": 1}]', r"not what `comet-score --to_json` writes\."),
        ('{"a": [{"src": "b"}]}', r"not what `comet-score --to_json` writes\."),
    ],
)
def test_files_that_hold_no_such_scores_are_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EvalError, match=message):
        comet(scores=path).score(GERMAN.hypotheses, GERMAN.references[:1], GERMAN.sources)


@pytest.mark.parametrize(
    ("num_references", "options", "message"),
    [
        (
            1,
            {},
            r"comet: must have `scores`, a file, or `python`, that of an environment with unbabel-comet\.",
        ),
        (1, {"scores": Path("none")}, r"none: no such file of COMET scores\."),
        (
            1,
            {"python": Path("none")},
            r"none: no Python here; name that of an environment with unbabel-comet\.",
        ),
        (1, {"scores": Path("a"), "python": Path("b")}, r"must have `scores` or `python`, but has both\."),
        (2, {"scores": Path("a")}, r"comet: must have at most 1 reference a sentence, but has 2\."),
    ],
)
def test_wrong_options_are_told(num_references: int, options: dict[str, object], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        comet(num_references, **options)
