r"""Data selection on text with noise of known kinds (Wang et al. 2018).

Claim: scores of a tuned model against its base tell noisy pairs from clean ones, and training on the best of
them pays. No peer, but random pairs and the clean pairs alone. Cited in docs/data/selection.md.

The training pairs are spoiled in three ways: the target of another pair, a target in another language, or the
source in place of the target. A base model is trained on the noisy text and tuned on a few trusted pairs.
Printed is, for each kind of noise, how well the scores separate it from clean pairs (area under the curve).
Then follow the losses on clean text of models trained from scratch, for equally many steps: on everything, on
the selected share, on a random share of that size, and on the clean pairs alone, which nobody would know.
Without a corpus folder, pairs of two synthetic languages are written. Started again, it goes on where it was.

    mnmt-data fetch libreoffice-help --langs en,de,fr
    OMP_NUM_THREADS=1 python -m benchmarks.data.selection --corpus corpora/libreoffice-help \
        --out benchmarks/results/data/selection.json
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from benchmarks.data.noisy_text import CLEAN, NOISE, TASK, Pair, Texts, read_texts, write_synthetic_text
from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, train_study, write_text
from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import order_path, pair_scores
from mnmt_model import write_log_probs
from mnmt_model.runs import read_evals, read_run

KEEP = 0.5
BATCH_TOKENS = 4096
RUN = "d96_en-de-1_seed1"

Kinds = NDArray[np.str_]

STUDY = """
name = "{name}"
[data]
tasks = ["en-de"]
corpus = "{corpus}"
max_length = 100
[data.clean]
identical = false
max_ratio = inf
[data.vocab]
{vocab}
[model]
d_model = 96
num_heads = 4
head_dim = 24
d_ff = 384
[train]
{train}
batch_tokens = {batch_tokens}
log_every = 100
checkpoint_every = 250
{selection}
[sweep.sizes.d96]
[sweep.fit]
sizes = ["d96"]
mixtures = [{{ en-de = 1.0 }}]
"""
FROM_SCRATCH = """steps = {steps}
learning_rate = 0.05
warmup_steps = {warmup}
cooldown_steps = {cooldown}
dropout = 0.1"""
TUNING = 'steps = {steps}\nlearning_rate = 0.01\ninitial = "{initial}"'
SELECTION = "[train.mixing]\nkeep = {keep}"


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A model trained from scratch on some of the noisy pairs."""

    name: str
    order: NDArray[np.int64] | None = None
    """Rows of the noisy shard, best first."""

    keep: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The options of all arms."""

    results: Path
    steps: int
    tuning_steps: int
    vocab_size: int
    seed: int
    held_out: int

    @property
    def vocab(self) -> str:
        """The study's section of the vocabulary of all text."""
        return f'kind = "unigram"\nsize = {self.vocab_size}'


def main(
    *,
    corpus: Path | None = None,
    results: Path | None = None,
    steps: int = 900,
    tuning_steps: int = 200,
    vocab_size: int = 3000,
    held_out: int = 1000,
    sentences: int = 40_000,
    seed: int = 1,
    out: Out = None,
) -> None:
    """Spoil, train, score, select and train again; print two tables.

    Args:
        corpus: Corpus folder with train.en-de.* and train.en-fr.*; synthetic text by default.
        results: Folder for data and runs, from which an interrupted benchmark goes on; a temporary one by
            default.
        steps: Training steps of each model.
        tuning_steps: Training steps on the trusted pairs.
        vocab_size: Tokens of the vocabulary.
        held_out: Pairs of the dev set and of the test set; three times as many are trusted.
        sentences: Sentences of the synthetic text.
        seed: Seed of the noise and of the random share.
        out: JSON file for the figures.
    """
    with tempfile.TemporaryDirectory() as temporary:
        experiment = Experiment(
            results=(results or Path(temporary)).absolute(),
            steps=steps,
            tuning_steps=tuning_steps,
            vocab_size=vocab_size,
            seed=seed,
            held_out=held_out,
        )
        corpus = corpus or write_synthetic_text(Path(temporary) / "text", sentences)
        figures = {"corpus": corpus.name, **measure(corpus, experiment)}
    print_report(figures)
    description = provenance("mnmt-data", "mnmt-model", "torch", "numpy")
    write_report(out, "selection of training pairs", figures, description)


def measure(corpus: Path, experiment: Experiment) -> Figures:
    """Train, score and select; return all figures."""
    texts = read_texts(corpus, held_out=experiment.held_out, seed=experiment.seed)
    data = prepare_pairs(experiment, "noisy", list(texts.train), texts.held_out, vocab=experiment.vocab)
    kinds = noise_kinds(data, texts.train)
    arms = [Arm(name="everything"), *blind_arms(kinds, seed=experiment.seed)]
    losses_of = {arm.name: train_arm(experiment, data, arm) for arm in arms}
    base = experiment.results / "everything" / "runs" / RUN
    tuned = tune(experiment, data, texts, base)
    scores = {model: log_probs(model, data) for model in (base, tuned)}
    order = select(data, scores[base], scores[tuned])
    losses_of["selected"] = train_arm(experiment, data, Arm(name="selected", order=order, keep=KEEP))
    return {
        "pairs": {kind: int((kinds == kind).sum()) for kind in (CLEAN, *NOISE)},
        "steps": experiment.steps,
        "epochs_of_everything": round(epochs(data, experiment.steps), 1),
        "tuning_steps": experiment.tuning_steps,
        "keep": KEEP,
        "clean_share_of_selected": float((kinds[order[: round(KEEP * len(order))]] == CLEAN).mean()),
        "auc": curves(kinds, base=scores[base], tuned=scores[tuned]),
        "losses": {**losses_of, "tuned": losses(tuned)},
    }


def prepare_pairs(
    experiment: Experiment,
    name: str,
    train: Sequence[Pair],
    held_out: Mapping[str, Sequence[Pair]],
    *,
    vocab: str,
) -> PreparedData:
    """Write a corpus folder and prepare it."""
    folder = experiment.results / name
    corpus = folder / "corpus"
    for split, pairs in {"train": train, "dev": held_out["dev"], "test": held_out["test"]}.items():
        for side, language in enumerate(TASK.split("-")):
            lines = "".join(pair[side] + "\n" for pair in pairs)
            write_text(corpus / f"{split}.{TASK}.{language}", lines)
    return open_prepared(prepare(write_study(folder, corpus=corpus, vocab=vocab), folder))


def noise_kinds(data: PreparedData, train: Mapping[Pair, str]) -> Kinds:
    """Return the kind of every pair of the noisy shard, (rows,), matched by token ids."""
    src, tgt = (data.vocab.encode_ragged([pair[side] for pair in train]) for side in (0, 1))
    kinds = {(*src[row], *tgt[row]): kind for row, kind in enumerate(train.values())}
    shard = data.shard("train", TASK)
    sources, targets = shard.gather(np.arange(len(shard)))
    return np.array([kinds[(*sources[row][1:], *targets[row])] for row in range(len(shard))])


def blind_arms(kinds: Kinds, *, seed: int) -> tuple[Arm, Arm]:
    """Return the two arms that need no scores: a random share, and the clean pairs."""
    any_order = np.random.default_rng(seed).permutation(len(kinds))
    clean_first = np.argsort(kinds != CLEAN, kind="stable")
    clean_share = float((kinds == CLEAN).mean())
    return (
        Arm(name="random", order=any_order, keep=KEEP),
        Arm(name=CLEAN, order=clean_first, keep=clean_share),
    )


def train_arm(experiment: Experiment, data: PreparedData, arm: Arm) -> dict[str, float]:
    """Train a model on a copy of the noisy data with the arm's order of pairs; return its losses."""
    folder = experiment.results / arm.name
    if not (folder / "data").exists():
        shutil.copytree(data.folder, folder / "data")
    selection = ""
    if arm.order is not None:
        path = order_path(folder / "data", TASK)
        path.parent.mkdir(exist_ok=True)
        np.save(path, arm.order)
        write_text(path.with_suffix(".json"), json.dumps({"sha256": sha256(path.read_bytes()).hexdigest()}))
        selection = SELECTION.format(keep=arm.keep)
    train = FROM_SCRATCH.format(
        steps=experiment.steps, warmup=min(200, experiment.steps // 4), cooldown=experiment.steps // 4
    )
    study = write_study(
        folder, corpus=folder / "corpus", vocab=experiment.vocab, train=train, selection=selection
    )
    train_study(study, folder)
    return losses(folder / "runs" / RUN)


def tune(experiment: Experiment, data: PreparedData, texts: Texts, base: Path) -> Path:
    """Tune the base model on the trusted pairs, with its own vocabulary; return the tuned run."""
    vocab = f'path = "{data.folder / "vocab.model"}"'
    prepare_pairs(experiment, "trusted", texts.held_out["trusted"], texts.held_out, vocab=vocab)
    folder = experiment.results / "trusted"
    train = TUNING.format(steps=experiment.tuning_steps, initial=base)
    train_study(write_study(folder, corpus=folder / "corpus", vocab=vocab, train=train), folder)
    return folder / "runs" / RUN


def write_study(folder: Path, *, corpus: Path, vocab: str = "", train: str = "", selection: str = "") -> Path:
    """Write the study of a folder; return its file."""
    text = STUDY.format(
        name=folder.name,
        corpus=corpus,
        vocab=vocab,
        train=train,
        batch_tokens=BATCH_TOKENS,
        selection=selection,
    )
    return write_text(folder / f"{folder.name}.toml", text)


def epochs(data: PreparedData, steps: int) -> float:
    """Return how often a model trained on everything sees each pair."""
    info = data.shard("train", TASK).info
    return steps * BATCH_TOKENS / (info.src_tokens + info.tgt_tokens)


def losses(folder: Path) -> dict[str, float]:
    """Return nats per target token on dev and test, and the seconds of training."""
    last = {line.testset: line.value for line in read_evals(folder) if line.metric == "loss"}
    return {"dev": last["dev"], "test": last["test"], "seconds": round(read_run(folder).wall_seconds or 0.0)}


def log_probs(model: Path, data: PreparedData) -> Path:
    """Write the log-probabilities of the noisy pairs under a model; return the file."""
    path = model / "scores" / f"train.{TASK}.parquet"
    write_log_probs(model, data.folder, task=TASK, out=path)
    return path


def select(data: PreparedData, base: Path, tuned: Path) -> NDArray[np.int64]:
    """Return the rows of the noisy shard, best first."""
    options = ("--task", TASK, "--base", str(base), "--tuned", str(tuned), "--samples", "3")
    command = [sys.executable, "-m", "mnmt_data", "select", str(data.folder), *options]
    subprocess.run(command, check=True)
    order: NDArray[np.int64] = np.load(order_path(data.folder, TASK))
    return order


def curves(kinds: Kinds, *, base: Path, tuned: Path) -> dict[str, dict[str, float]]:
    """Return {score: {kind of noise: area under the curve against the clean pairs}}."""
    scores = {
        "contrast": pair_scores(base=base, tuned=tuned),
        "plain, tuned": pair_scores(base=None, tuned=tuned),
        "plain, base": pair_scores(base=base, tuned=None),
    }
    return {name: dict(areas(values, kinds)) for name, values in scores.items()}


def areas(scores: NDArray[np.float32], kinds: Kinds) -> Iterator[tuple[str, float]]:
    """Yield `(kind, area under the curve)`, and all noise together at the end."""
    for kind in NOISE:
        among = (kinds == CLEAN) | (kinds == kind)
        yield kind, area_under_curve(scores[among], kinds[among] == CLEAN)
    yield "all", area_under_curve(scores, kinds == CLEAN)


def area_under_curve(scores: NDArray[np.float32], is_clean: NDArray[np.bool_]) -> float:
    """Return the probability that a random clean pair scores above a noisy one; equal scores count half."""
    clean, noisy = scores[is_clean], scores[~is_clean]
    return float(mannwhitneyu(clean, noisy).statistic / (len(clean) * len(noisy)))


def print_report(figures: Figures) -> None:
    """Print the two tables."""
    print(f"\n### Separation of clean pairs from noise: area under the curve ({figures['pairs']})\n")
    print_table(
        [
            {"score": name, **{kind: f"{area:.3f}" for kind, area in row.items()}}
            for name, row in figures["auc"].items()
        ]
    )
    print(f"Of the best {figures['keep']:.0%}, {figures['clean_share_of_selected']:.1%} are clean.")
    print(f"\n### Loss on clean text after {figures['steps']} steps, nats per token\n")
    everything = figures["losses"]["everything"]["dev"]
    print_table(
        [
            {
                "trained on": name,
                "dev": f"{loss['dev']:.3f}",
                "test": f"{loss['test']:.3f}",
                "dev, gain over everything": f"{everything - loss['dev']:+.3f}",
            }
            for name, loss in figures["losses"].items()
        ]
    )


if __name__ == "__main__":
    smoke = {"steps": 4, "tuning_steps": 2, "vocab_size": 400, "held_out": 50, "sentences": 2000}
    run(main, smoke=smoke)
