from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpora import GERMAN

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import CometConfig, Metric, MetricConfig, metric


def comet(num_references: int = 1, **options: object) -> Metric:
    config = CometConfig(**options)  # type: ignore[arg-type]
    return metric("comet", target="de", config=MetricConfig(num_references=num_references, comet=config))


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
    scorer = comet(scores=(path,), model="Unbabel/XCOMET-XL")
    statistics = scorer.sentence_statistics(GERMAN.others, GERMAN.references[:1], GERMAN.sources)
    assert scorer.sentence_scores(statistics).tolist() == [1.5 + line / 100 for line in range(7)]
    with pytest.raises(
        EvalError, match=r"must hold scores of this output, but holds those of system0, system1\."
    ):
        scorer.score(GERMAN.references[1], GERMAN.references[:1], GERMAN.sources)


def test_the_signature_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    signatures = set()
    for text in ("{}", "{ }"):
        path.write_text(text, encoding="utf-8")
        signatures.add(comet(scores=(path,)).signature)
    assert len(signatures) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5\n", r"not what `comet-score --to_json` writes\."),
        ("{}", r"must hold scores of this output, but holds those of none\."),
        ('{"a": [{"mt": 1}]', r"not what `comet-score --to_json` writes\."),
        ('{"a": [{"src": "b"}]}', r"not what `comet-score --to_json` writes\."),
    ],
)
def test_files_that_hold_no_such_scores_are_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EvalError, match=message):
        comet(scores=(path,)).score(GERMAN.hypotheses, GERMAN.references[:1], GERMAN.sources)


@pytest.mark.parametrize(
    ("num_references", "options", "message"),
    [
        (1, {}, r"comet: must have `scores`, a file that `comet-score --to_json` wrote\."),
        (1, {"scores": (Path("none"),)}, r"none: no such file of COMET scores\."),
        (2, {"scores": (Path("a"),)}, r"comet: must have at most 1 reference a sentence, but has 2\."),
    ],
)
def test_wrong_options_are_told(num_references: int, options: dict[str, object], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        comet(num_references, **options)
