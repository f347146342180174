from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import Score, bleu, chrf, metric

CORPORA = {
    "de": (
        ["Der Hund schläft im Garten, nicht wahr?", "Es regnet seit 3.5 Tagen.", "", "Ja &amp; nein."],
        ["Der Hund schläft heute im Garten, oder?", "Es regnet seit 3,5 Tagen.", "Gut.", "Ja &amp; nein."],
    ),
    "zh": (
        ["今天天气很好。", "他在2024年去了北京,是吗?", "打开 File 菜单"],
        ["今天的天气非常好。", "他2024年去过北京,对吗?", "请打开 File 菜单。"],
    ),
    "ja": (
        ["今日は天気がとても良いです。", "彼は東京に行きました。", "犬が庭で寝ている"],
        ["今日はとても良い天気です。", "彼は東京へ行った。", "犬は庭で寝ています。"],
    ),
    "aa": (
        ["kani tolu mefa", "tolu tolu", "mefa kani kani so"],
        ["kani tolu mefa", "tolu mefa so", "mefa kani kani so"],
    ),
}
TOKENIZERS = {"de": "13a", "zh": "zh", "ja": "ja-mecab", "aa": "13a"}
DIGITS = 12


def sacrebleu_says(tmp_path: Path, name: str, target: str) -> tuple[str, str]:
    """Value and signature printed by sacreBLEU's own command line."""
    for side, lines in zip(("hyp", "ref"), CORPORA[target], strict=True):
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "ref"), "-i", str(tmp_path / "hyp")]
    options = ["-l", f"en-{target}", "-m", name, "-w", str(DIGITS)]
    printed = subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
    said = json.loads(printed)
    value = subprocess.run([*command, *options, "-b"], capture_output=True, text=True, check=True).stdout
    return value.strip(), said["signature"]


@pytest.mark.parametrize("target", list(CORPORA))
@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_values_and_signatures_are_those_of_sacrebleus_command_line(
    tmp_path: Path, name: str, target: str
) -> None:
    if target == "ja" and name == "bleu":
        pytest.importorskip("MeCab", reason="the extra ja is not installed")
    value, signature = sacrebleu_says(tmp_path, name, target)
    score = metric(name, target=target).score(*CORPORA[target])
    assert f"{score.value:.{DIGITS}f}" == value
    assert score == Score(name=name, value=score.value, signature=signature)
    assert 0 < score.value < 100


@pytest.mark.parametrize(("target", "tokenizer"), [*TOKENIZERS.items(), ("zh_CN", "zh"), ("pt_BR", "13a")])
def test_the_target_language_chooses_the_tokenizer(target: str, tokenizer: str) -> None:
    if tokenizer == "ja-mecab":
        pytest.importorskip("MeCab", reason="the extra ja is not installed")
    assert f"|tok:{tokenizer}" in bleu(target).signature


def test_the_signature_is_the_same_before_and_after_scoring() -> None:
    for made in (bleu("de"), chrf()):
        before = made.signature
        assert made.score(*CORPORA["de"]).signature == before


def test_a_perfect_translation_scores_100() -> None:
    _, references = CORPORA["de"]
    assert bleu("de").score(references, references).value == pytest.approx(100)
    assert chrf().score(references, references).value == pytest.approx(100)


def test_a_missing_tokenizer_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(EvalError, match=r"the tokenizer for ja is missing; `pip install 'mnmt-eval\[ja\]'`"):
        bleu("ja")


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a"], ["a", "b"], r"chrf: must have as many hypotheses as references \(2\), but has 1\."),
        ([], [], r"chrf: must have at least one hypothesis and reference, but has none\."),
    ],
)
def test_what_cannot_be_scored_is_told(hypotheses: list[str], references: list[str], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        chrf().score(hypotheses, references)


def test_an_unknown_metric_is_told() -> None:
    with pytest.raises(EvalError, match=r"unknown metric 'bleurt'; must be one of bleu, chrf\."):
        metric("bleurt", target="de")


def test_metrics_need_no_torch() -> None:
    program = "import sys; sys.modules['torch'] = None; from mnmt_eval.metrics import bleu; bleu('de')"
    subprocess.run([sys.executable, "-c", program], check=True)
