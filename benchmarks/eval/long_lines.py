r"""Quality of long sources, whole and in parts, against the lengths that a model was trained on.

Claims: quality falls from about the 99% quantile of the training sources' lengths on, and parts of at most
that length keep it.

The model translates between two made-up languages, whose sentences have a log-normal number of words with a
median of 10: every word has one translation, and each fifth kind of word goes behind the next. So a short
source is translated almost without a mistake, whatever is around it, and nothing but length makes a long one
harder.

    python -m benchmarks.eval.long_lines --out benchmarks/results/eval/long_lines.json
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measurement import (
    Counts,
    Figures,
    Numbers,
    Out,
    print_table,
    provenance,
    run,
    write_report,
)
from mnmt_data import prepare_study, read_study
from mnmt_eval import SearchConfig
from mnmt_eval.metrics import metric
from mnmt_eval.runs import TrainedRun, open_run
from mnmt_eval.translate import TorchEngine, translate
from mnmt_model import run_configs, train

STUDY = """
name = "long"
[data]
tasks = ["xx-yy"]
max_length = 512
dev_sentences = 100
test_sentences = 100
[data.files.train]
xx-yy = ["FOLDER/train.xx-yy.{lang}"]
[data.vocab]
kind = "word"
size = 1000
[model]
encoder_layers = 2
decoder_layers = 2
d_model = 128
num_heads = 4
head_dim = 32
d_ff = 256
[train]
steps = STEPS
batch_tokens = 3000
learning_rate = 0.02
warmup_steps = WARMUP
cooldown_steps = COOLDOWN
log_every = 100
checkpoint_every = 250
[sweep.sizes.d128]
[sweep.fit]
sizes = ["d128"]
mixtures = [{ xx-yy = 1.0 }]
"""
KINDS = 300
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def main(
    *,
    pairs: int = 120_000,
    steps: int = 1500,
    lengths: Counts = (20, 30, 40, 50, 60, 80, 100, 150, 200, 300),
    words: int = 1600,
    quantiles: Numbers = (0.9, 0.99, 0.999),
    trained: Path | None = None,
    out: Out = None,
) -> None:
    """Print a table of long sources.

    Args:
        pairs: Sentence pairs that the model is trained on.
        steps: Its training steps.
        lengths: Words of the sources that are translated.
        words: Words of all sources of one length together.
        quantiles: Quantiles of the training lengths that are the limits of a part.
        trained: A run on such text, to take in place of training one.
        out: JSON file for the figures.
    """
    figures: Figures = {"pairs": pairs, "steps": steps}
    with TemporaryDirectory() as folder:
        opened = open_run(trained or train_model(Path(folder), pairs, steps))
        figures["long sources"] = long_sources(opened, lengths, words, quantiles)
    print_table(figures["long sources"])
    write_report(out, "long sources", figures, provenance("mnmt-eval", "mnmt-model", "sacrebleu", "torch"))


def train_model(folder: Path, pairs: int, steps: int) -> Path:
    """Prepare the languages' text, train a model on it, and return its folder."""
    rng = random.Random(0)
    lines = [make_pair(max(1, min(90, round(rng.lognormvariate(2.3, 0.6)))), rng) for _ in range(pairs)]
    for side, language in enumerate(("xx", "yy")):
        text = "".join(pair[side] + "\n" for pair in lines)
        (folder / f"train.xx-yy.{language}").write_text(text, encoding="utf-8")
    path = folder / "long.toml"
    values = {"FOLDER": folder.resolve(), "STEPS": steps, "WARMUP": steps // 15, "COOLDOWN": steps // 4}
    content = STUDY
    for name, value in values.items():
        content = content.replace(name, str(value))
    path.write_text(content, encoding="utf-8")
    study = read_study(path)
    prepare_study(study, folder / "results")
    (config,) = run_configs(study, folder / "results" / "data")
    train(config, folder / "results" / "run")
    return folder / "results" / "run"


def vocabulary(seed: int, ends: Sequence[str]) -> list[str]:
    """Return the words of a language."""
    rng = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < KINDS:
        stem = "".join(rng.choice(SYLLABLES) for _ in range(rng.choice([1, 2, 2, 3])))
        words.setdefault(stem + rng.choice(ends))
    return list(words)


SOURCE, TARGET = vocabulary(1, ["n", "s", "", "k"]), vocabulary(2, ["en", "er", "et", "o"])
WEIGHTS = [1 / (rank + 5) for rank in range(KINDS)]


def make_pair(count: int, rng: random.Random) -> tuple[str, str]:
    """Return a source of `count` words, and its translation."""
    src = rng.choices(range(KINDS), WEIGHTS, k=count)
    tgt, place = list(src), 0
    while place < count - 1:
        goes_behind = tgt[place] % 5 == 0
        if goes_behind:
            tgt[place : place + 2] = tgt[place + 1], tgt[place]
        place += 1 + goes_behind
    return " ".join(SOURCE[kind] for kind in src) + " .", " ".join(TARGET[kind] for kind in tgt) + " ."


def long_sources(
    trained: TrainedRun, lengths: Sequence[int], words: int, quantiles: Sequence[float]
) -> list[Figures]:
    """Translate sources of each length whole and in parts; return chrF, and characters per expected one."""
    shard = trained.data.shard("train", "xx-yy")
    tokens, _ = shard.lengths(np.arange(len(shard)))
    limits = {f"{quantile:.1%}": int(np.quantile(tokens, quantile)) for quantile in quantiles}
    rng = random.Random(1)
    rows = []
    for length in lengths:
        src, references = zip(*(make_pair(length, rng) for _ in range(-(-words // length))), strict=True)
        row: Figures = {"tokens": length + 3, "share of training": f"{np.mean(tokens <= length + 3):.2%}"}
        row["whole"] = quality(trained, src, references, None)
        for name, limit in limits.items():
            if limit < length + 3:
                row[f"parts of {limit} ({name})"] = quality(trained, src, references, limit)
        rows.append(row)
    return rows


def quality(
    trained: TrainedRun, src: Sequence[str], references: Sequence[str], max_source: int | None
) -> str:
    """Return chrF, and the characters of the translations per character of the references."""
    engine = TorchEngine(model=trained.loaded.model, config=SearchConfig())
    results = translate(engine, trained.data.vocab, src, target="yy", max_source=max_source)
    translations = [each.text for each in results]
    chrf = metric("chrf", target="yy")
    value = chrf.corpus(chrf.sentence_statistics(translations, [references], src)).value
    return f"{value:.1f} ({sum(map(len, translations)) / sum(map(len, references)):.2f})"


if __name__ == "__main__":
    run(main, smoke={"pairs": 1200, "steps": 2, "lengths": (20, 90), "words": 90})
