r"""The accuracy of the metric `language`: its identifiers on text whose language is known.

Claim: how often each identifier is right, by the length of a line. No peer but each other. Cited in
docs/eval/metrics.md.

Every text is a human translation, or the English original. Lines that another text holds too are left out,
such as names and commands that stay English: nobody could tell their language. `accuracy` is the share in
percent of a text's lines that an identifier assigns to its language, `by_length` the same for lines of so
many characters, `confusion` the row of the confusion table, and `agree` the share of lines for which both
identifiers say the same. Without texts, sentences of the Universal Declaration of Human Rights are
identified.

    python -m benchmarks.eval.language_accuracy \
        --texts en=help/train.en-de.en de=help/train.en-de.de fr=help/train.en-fr.fr zh=help/train.en-zh.zh
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measurement import Figures, Names, Out, is_installed, provenance, run, write_report
from mnmt_eval.language import IDENTIFIERS, has_letters
from mnmt_eval.metrics import Floats, LanguageAccuracy, LanguageConfig

LENGTHS = (10, 20, 40, 80)

DECLARATION = {
    "en": (
        "All human beings are born free and equal in dignity and rights.",
        "Everyone has the right to life, liberty and security of person.",
        "No one shall be held in slavery or servitude.",
    ),
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
        "Jeder hat das Recht auf Leben, Freiheit und Sicherheit der Person.",
        "Niemand darf in Sklaverei oder Leibeigenschaft gehalten werden.",
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
        "Tout individu a droit à la vie, à la liberté et à la sûreté de sa personne.",
        "Nul ne sera tenu en esclavage ni en servitude.",
    ),
}
"""{language: sentences of the articles 1, 3 and 4}."""


def main(*, texts: Names = (), sentences: int = 5000, out: Out = None) -> None:
    """Print accuracy, confusion and speed of each identifier on each text.

    Args:
        texts: Files with the language of their lines, as `de=FILE`.
        sentences: Lines of each text, spread evenly over it.
        out: JSON file for the figures.
    """
    files = {language: Path(file) for language, _, file in (text.partition("=") for text in texts)}
    texts_of: Mapping[str, Sequence[str]] = read_texts(files) or DECLARATION
    lines = sample_lines(texts_of, sentences)
    identifiers = [name for name in IDENTIFIERS if is_installed(name)]
    rows = [measure(language, lines, identifiers) for language in lines]
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))
    names = {language: f"{file.parent.name}/{file.name}" for language, file in files.items()}
    figures = {"texts": names or "Universal Declaration of Human Rights", "results": rows}
    what = "accuracy of language identification among the languages of a study"
    write_report(out, what, figures, provenance("mnmt-eval", "py3langid", "lingua-language-detector"))


def read_texts(files: Mapping[str, Path]) -> dict[str, list[str]]:
    """Return {language: the lines of its file}."""
    return {language: file.read_text(encoding="utf-8").split("\n") for language, file in files.items()}


def sample_lines(texts: Mapping[str, Sequence[str]], sentences: int) -> dict[str, list[str]]:
    """Return different lines of each text that have letters and are in no other text."""
    distinct = {language: dict.fromkeys(lines) for language, lines in texts.items()}
    samples = {}
    for language, lines in distinct.items():
        others = [other for name, other in distinct.items() if name != language]
        usable = [line for line in lines if has_letters(line) and not any(line in other for other in others)]
        places = np.linspace(0, len(usable) - 1, min(sentences, len(usable))).astype(int)
        samples[language] = [usable[place] for place in places]
    return samples


def measure(language: str, lines: Mapping[str, Sequence[str]], identifiers: Sequence[str]) -> Figures:
    """Measure the identifiers on the lines of one language; all languages are candidates."""
    sample = lines[language]
    row: Figures = {"language": language, "lines": len(sample)}
    statistics = {}
    for name in identifiers:
        config = LanguageConfig(candidates=tuple(lines), identifier=name)
        metric = LanguageAccuracy(language, config)
        metric.sentence_statistics(sample[:100], [])
        start = time.perf_counter()
        statistics[name] = metric.sentence_statistics(sample, [])
        seconds = time.perf_counter() - start
        row[name] = {
            "accuracy": round(metric.corpus(statistics[name]).value, 2),
            "by_length": by_length(metric, statistics[name], sample),
            "confusion": metric.confusion(statistics[name]),
            "lines_per_second": round(len(sample) / seconds),
            "signature": metric.signature,
        }
    if len(statistics) == 2:
        first, second = statistics.values()
        row["agree"] = round(100 * float((first == second).all(axis=1).mean()), 2)
    return row


def by_length(metric: LanguageAccuracy, statistics: Floats, lines: Sequence[str]) -> dict[str, float]:
    """Return the accuracy on the lines between two bounds of length."""
    groups = np.digitize([len(line) for line in lines], LENGTHS)
    bounds = [*(f"<{bound}" for bound in LENGTHS), f">={LENGTHS[-1]}"]
    return {
        bound: round(metric.corpus(statistics[groups == group]).value, 2)
        for group, bound in enumerate(bounds)
        if (groups == group).any()
    }


if __name__ == "__main__":
    run(main, smoke={})
