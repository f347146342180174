"""How often the metric `language` is right: identifiers on text whose language is known.

Every text is human translation, or the English it was made from; lines that another text holds too, such as
names and commands that stay English, are left out, as nobody could tell their language. `accuracy` is the
share in percent of a text's lines that an identifier finds to be in its language, `by_length` the same for
lines of so many characters, `found` the row of the confusion table, `agree` the share of lines for which the
two identifiers say the same.

    python -m benchmarks.eval.language_accuracy \
        --texts en=help/train.en-de.en de=help/train.en-de.de fr=help/train.en-fr.fr zh=help/train.en-zh.zh
"""

from __future__ import annotations

import json
import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np

from mnmt_eval.language import IDENTIFIERS
from mnmt_eval.language.identifier import has_letters
from mnmt_eval.metrics import LanguageAccuracy, LanguageOptions
from mnmt_eval.metrics.metric import Floats

LENGTHS = (10, 20, 40, 80)

Texts = Annotated[list[str], cyclopts.Parameter(consume_multiple=True)]


def main(texts: Texts, sentences: int = 5000, out: Path | None = None) -> None:
    """Print accuracy, confusion and speed of each identifier on each text.

    Args:
        texts: Files with the language of their lines, as `de=FILE`.
        sentences: Lines of each, spread evenly over it.
        out: File for the figures.
    """
    files = {language: Path(file) for language, _, file in (text.partition("=") for text in texts)}
    lines = sample(files, sentences)
    rows = [measure(language, lines) for language in lines]
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))
    if out:
        out.write_text(json.dumps(describe(files) | {"results": rows}, indent=1) + "\n", encoding="utf-8")


def sample(files: dict[str, Path], sentences: int) -> dict[str, list[str]]:
    """Different lines of each text with letters that no other text holds."""
    texts = {language: dict.fromkeys(read_lines(file)) for language, file in files.items()}
    chosen = {}
    for language, lines in texts.items():
        others = [other for name, other in texts.items() if name != language]
        own = [line for line in lines if has_letters(line) and not any(line in other for other in others)]
        places = np.linspace(0, len(own) - 1, min(sentences, len(own))).astype(int)
        chosen[language] = [own[place] for place in places]
    return chosen


def read_lines(file: Path) -> list[str]:
    """The lines of a file."""
    return file.read_text(encoding="utf-8").split("\n")


def measure(language: str, lines: dict[str, list[str]]) -> dict[str, Any]:
    """Both identifiers on the lines of one language, all languages being candidates."""
    own = lines[language]
    row: dict[str, Any] = {"language": language, "lines": len(own)}
    statistics = {}
    for name in IDENTIFIERS:
        options = LanguageOptions(candidates=tuple(lines), identifier=name)
        metric = LanguageAccuracy(language, options)
        metric.sentence_statistics(own[:100], [])
        start = time.perf_counter()
        statistics[name] = metric.sentence_statistics(own, [])
        seconds = time.perf_counter() - start
        row[name] = {
            "accuracy": round(metric.corpus(statistics[name]).value, 2),
            "by_length": by_length(metric, statistics[name], own),
            "found": metric.confusion(statistics[name]),
            "lines_per_second": round(len(own) / seconds),
            "signature": metric.signature,
        }
    first, second = statistics.values()
    row["agree"] = round(100 * float((first == second).all(axis=1).mean()), 2)
    return row


def by_length(metric: LanguageAccuracy, statistics: Floats, lines: list[str]) -> dict[str, float]:
    """Accuracy of the lines shorter than each bound, but no shorter than the one before."""
    groups = np.digitize([len(line) for line in lines], LENGTHS)
    bounds = [*(f"<{bound}" for bound in LENGTHS), f">={LENGTHS[-1]}"]
    return {
        bound: round(metric.corpus(statistics[groups == group]).value, 2)
        for group, bound in enumerate(bounds)
        if (groups == group).any()
    }


def describe(files: dict[str, Path]) -> dict[str, Any]:
    """Where and on what this was measured."""
    return {
        "what": "accuracy of language identification among the languages of a study",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
        "texts": {language: f"{file.parent.name}/{file.name}" for language, file in files.items()},
    }


if __name__ == "__main__":
    cyclopts.run(main)
