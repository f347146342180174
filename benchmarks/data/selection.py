r"""What data selection finds, and what it gains, on real text with noise of known kinds (Wang et al. 2018).

Sentence pairs of a corpus folder are spoiled in three ways: the target of another pair, a target in another
language, the source in place of the target. A base model is trained on the noisy text and tuned on a few
trusted pairs that were held back. Printed are, for each kind of noise, how well the scores tell it from clean
pairs (area under the curve), and the losses on clean text of models trained from scratch, for equally many
steps, on everything, on the selected share from the start, on a share that shrinks to it, on a random share
of that size, and on the clean pairs alone, which nobody would know. Started again, it goes on where it was.

    mnmt-data fetch libreoffice-help --langs en,de,fr
    OMP_NUM_THREADS=1 python -m benchmarks.data.selection corpora/libreoffice-help \
        --json benchmarks/results/data/selection.json
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters import normalise
from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import area_under_curve, order_path, pair_scores
from mnmt_model.runs import read_evals, read_run

TASK, OTHER = "en-de", "en-fr"
CLEAN = "clean"
NOISE = {"misaligned": 0.15, "wrong language": 0.15, "copy": 0.15}
HELD_OUT = (1000, 2000, 5000)
"""Where, among the pairs in random order, the dev, test and trusted pairs end."""
FEWEST_WORDS = 4
KEEP = 0.5
BATCH_TOKENS = 4096
RUN = "d96_en-de-1_seed1"
PACKAGES = ("mnmt-data", "mnmt-model", "torch", "numpy")

Pair = tuple[str, str]
Kinds = NDArray[np.str_]
Item = TypeVar("Item")

STUDY = """
name = "{name}"
[data]
tasks = ["en-de"]
corpus = "{corpus}"
max_length = 100
{clean}
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

CLEANING = "[data.clean]\nidentical = false\nmax_ratio = inf"
FROM_SCRATCH = (
    "steps = {steps}\nlearning_rate = 0.05\nwarmup_steps = 200\ncooldown_steps = {cooldown}\ndropout = 0.1"
)
TUNING = 'steps = {steps}\nlearning_rate = 0.01\ninitial = "{initial}"'
SELECTION = "[train.mixing.selection]\nkeep = {keep}\nhalf_life = {half_life}"


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The corpus, spoiled."""

    train: dict[Pair, str]
    """{pair: the kind of its noise, or "clean"}."""

    held_out: Mapping[str, Sequence[Pair]]
    """Clean pairs: `dev`, `test`, and `trusted`."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A model trained from scratch on some of the noisy pairs."""

    name: str
    order: NDArray[np.int64] | None = None
    """Rows of the noisy shard, best first."""

    keep: float = 1.0
    half_life: int = 0


def main() -> None:
    """Spoil, train, score, select, train, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="corpus folder with train.en-de.* and train.en-fr.*")
    parser.add_argument("--results", type=Path, default=Path("results/selection"))
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--tuning-steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report = measure(arguments)
    print_report(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything the benchmark does, as plain data."""
    results, steps = arguments.results, arguments.steps
    texts = read_texts(arguments.corpus, seed=arguments.seed)
    data = prepare(results, "noisy", texts.train, texts.held_out, vocab='kind = "unigram"\nsize = 3000')
    kinds = kinds_of(data, texts.train)
    found = {"everything": train_arm(results, data, Arm(name="everything"), steps)}
    for arm in blind_arms(kinds, seed=arguments.seed):
        found[arm.name] = train_arm(results, data, arm, steps)
    base = results / "everything" / "runs" / RUN
    tuned = tune(results, data, texts, base, arguments.tuning_steps)
    scores = {run: score(run, data) for run in (base, tuned)}
    order = select(data, scores[base], scores[tuned])
    for half_life, name in ((0, "selected"), (steps // 2, "annealed")):
        arm = Arm(name=name, order=order, keep=KEEP, half_life=half_life)
        found[name] = train_arm(results, data, arm, steps)
    return {
        "software": {name: version(name) for name in PACKAGES},
        "corpus": arguments.corpus.name,
        "pairs": {kind: int((kinds == kind).sum()) for kind in (CLEAN, *NOISE)},
        "steps": steps,
        "epochs_of_everything": round(epochs(data, steps), 1),
        "tuning_steps": arguments.tuning_steps,
        "keep": KEEP,
        "clean_share_of_selected": float((kinds[order[: round(KEEP * len(order))]] == CLEAN).mean()),
        "auc": curves(kinds, base=scores[base], tuned=scores[tuned]),
        "losses": {**found, "tuned": losses(tuned)},
    }


def read_texts(corpus: Path, *, seed: int) -> Texts:
    """Pairs of distinct sources and distinct targets: some held out, the rest spoiled."""
    by_source = {src: (src, tgt) for src, tgt in read_pairs(corpus, TASK) if usable(src, tgt)}
    pairs = shuffled(list({tgt: (src, tgt) for src, tgt in by_source.values()}.values()), seed)
    dev, test, trusted, rest = (pairs[start:end] for start, end in pairwise((0, *HELD_OUT, len(pairs))))
    other = {src: tgt for src, tgt in read_pairs(corpus, OTHER) if src != tgt}
    noisy = dict(shuffled(list(spoil(rest, other).items()), seed))
    return Texts(train=noisy, held_out={"dev": dev, "test": test, "trusted": trusted})


def spoil(pairs: Sequence[Pair], other: Mapping[str, str]) -> dict[Pair, str]:
    """{pair: kind}, the share of each kind that `NOISE` states.

    Args:
        pairs: Clean pairs in random order.
        other: {source: its translation into another language}, for some of them.
    """
    counts = {kind: round(share * len(pairs)) for kind, share in NOISE.items()}
    foreign = dict.fromkeys([src for src, _ in pairs if src in other][: counts["wrong language"]])
    rest = [pair for pair in pairs if pair[0] not in foreign]
    misaligned, rest = rest[: counts["misaligned"]], rest[counts["misaligned"] :]
    copied, rest = rest[: counts["copy"]], rest[counts["copy"] :]
    return {
        **dict.fromkeys(rest, CLEAN),
        **{(one[0], next_one[1]): "misaligned" for one, next_one in pairwise((*misaligned, misaligned[0]))},
        **{(src, other[src]): "wrong language" for src in foreign},
        **{(src, src): "copy" for src, _ in copied},
    }


def shuffled(items: Sequence[Item], seed: int) -> list[Item]:
    """The items in random order."""
    return [items[index] for index in np.random.default_rng(seed).permutation(len(items))]


def read_pairs(corpus: Path, task: str) -> Iterator[Pair]:
    """The training pairs of a corpus folder, normalised as preparation does."""
    sides = [corpus / f"train.{task}.{language}" for language in task.split("-")]
    for pair in zip(*(side.read_text(encoding="utf-8").split("\n") for side in sides), strict=True):
        src, tgt = map(normalise, pair)
        yield src, tgt


def usable(src: str, tgt: str) -> bool:
    """Whether a pair is long enough to be told from noise."""
    return src != tgt and min(len(src.split()), len(tgt.split())) >= FEWEST_WORDS


def prepare(
    results: Path,
    name: str,
    train: Sequence[Pair] | Mapping[Pair, str],
    held_out: Mapping[str, Any],
    *,
    vocab: str,
) -> PreparedData:
    """Write a corpus folder and prepares it."""
    folder = results / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for split, pairs in {"train": list(train), "dev": held_out["dev"], "test": held_out["test"]}.items():
        for side, language in enumerate(TASK.split("-")):
            lines = "".join(pair[side] + "\n" for pair in pairs)
            (corpus / f"{split}.{TASK}.{language}").write_text(lines, encoding="utf-8")
    study = write_study(folder, name=name, corpus=corpus, vocab=vocab, train="", selection="")
    run("mnmt_data", "prepare", study, "--out", folder)
    return open_prepared(folder / "data")


def kinds_of(data: PreparedData, train: Mapping[Pair, str]) -> Kinds:
    """(rows,) the kind of every pair of the noisy shard, found by its token ids."""
    src, tgt = (data.vocab.encode_ragged([pair[side] for pair in train]) for side in (0, 1))
    kinds = {(*src[row], *tgt[row]): kind for row, kind in enumerate(train.values())}
    shard = data.shard("train", TASK)
    sources, targets = shard.gather(np.arange(len(shard)))
    return np.array([kinds[(*sources[row][1:], *targets[row])] for row in range(len(shard))])


def blind_arms(kinds: Kinds, *, seed: int) -> tuple[Arm, Arm]:
    """The two that need no scores: a random share, and the clean pairs."""
    any_order = np.random.default_rng(seed).permutation(len(kinds))
    clean_first = np.argsort(kinds != CLEAN, kind="stable")
    clean_share = float((kinds == CLEAN).mean())
    return Arm(name="random", order=any_order, keep=KEEP), Arm(
        name=CLEAN, order=clean_first, keep=clean_share
    )


def train_arm(results: Path, data: PreparedData, arm: Arm, steps: int) -> dict[str, float]:
    """Train a model on copies of the noisy data that have the arm's order of pairs; its losses."""
    folder = results / arm.name
    if not (folder / "data").exists():
        shutil.copytree(data.folder, folder / "data")
    selection = ""
    if arm.order is not None:
        path = order_path(folder / "data", TASK)
        path.parent.mkdir(exist_ok=True)
        np.save(path, arm.order)
        selection = SELECTION.format(keep=arm.keep, half_life=arm.half_life)
    train = FROM_SCRATCH.format(steps=steps, cooldown=steps // 4)
    return train_study(folder, data=folder / "corpus", train=train, selection=selection)


def tune(results: Path, data: PreparedData, texts: Texts, base: Path, steps: int) -> Path:
    """Tunes the base model on the trusted pairs, with the vocabulary it has; the tuned run."""
    vocab = f'path = "{data.folder / "vocab.model"}"'
    prepare(results, "trusted", texts.held_out["trusted"], texts.held_out, vocab=vocab)
    folder = results / "trusted"
    train_study(folder, data=folder / "corpus", train=TUNING.format(steps=steps, initial=base), selection="")
    return folder / "runs" / RUN


def train_study(folder: Path, *, data: Path, train: str, selection: str) -> dict[str, float]:
    """Train the one run of a study over the prepared data in its folder."""
    study = write_study(folder, name=folder.name, corpus=data, vocab="", train=train, selection=selection)
    run("mnmt_model", "train", study, RUN, "--out", folder)
    return losses(folder / "runs" / RUN)


def write_study(folder: Path, *, name: str, corpus: Path, vocab: str, train: str, selection: str) -> Path:
    """A study file."""
    study = folder / f"{name}.toml"
    text = STUDY.format(
        name=name,
        corpus=corpus,
        clean=CLEANING,
        vocab=vocab,
        train=train,
        batch_tokens=BATCH_TOKENS,
        selection=selection,
    )
    study.write_text(text, encoding="utf-8")
    return study


def epochs(data: PreparedData, steps: int) -> float:
    """How often a model trained on everything sees each pair."""
    info = data.shard("train", TASK).info
    return steps * BATCH_TOKENS / (info.src_tokens + info.tgt_tokens)


def losses(folder: Path) -> dict[str, float]:
    """Nats per target token on dev and test, and the seconds it took."""
    last = {found.testset: found.value for found in read_evals(folder) if found.metric == "loss"}
    return {"dev": last["dev"], "test": last["test"], "seconds": round(read_run(folder).wall_seconds or 0.0)}


def score(run_folder: Path, data: PreparedData) -> Path:
    """Log-probabilities of the noisy pairs under a model."""
    path = run_folder / "scores" / f"train.{TASK}.parquet"
    run("mnmt_model", "log-probs", run_folder, "--data", data.folder, "--task", TASK, "--out", path)
    return path


def select(data: PreparedData, base: Path, tuned: Path) -> NDArray[np.int64]:
    """Rows of the noisy shard, best first."""
    run(
        "mnmt_data", "select", data.folder, "--task", TASK, "--base", base, "--tuned", tuned, "--samples", "3"
    )
    order: NDArray[np.int64] = np.load(order_path(data.folder, TASK))
    return order


def curves(kinds: Kinds, *, base: Path, tuned: Path) -> dict[str, dict[str, float]]:
    """{score: {kind of noise: area under the curve against the clean pairs}}."""
    scores = {
        "contrast": pair_scores(base=base, tuned=tuned),
        "plain, tuned": pair_scores(base=None, tuned=tuned),
        "plain, base": pair_scores(base=base, tuned=None),
    }
    return {name: dict(by_kind(values, kinds)) for name, values in scores.items()}


def by_kind(scores: NDArray[np.float32], kinds: Kinds) -> Iterator[tuple[str, float]]:
    """`(kind, area under the curve)`, all noise together last."""
    for kind in NOISE:
        among = (kinds == CLEAN) | (kinds == kind)
        yield kind, area_under_curve(scores[among], kinds[among] == CLEAN)
    yield "all", area_under_curve(scores, kinds == CLEAN)


def run(module: str, *arguments: str | Path) -> None:
    """One of our commands; ends this program if it fails."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    if status := subprocess.run(command, check=False).returncode:
        raise SystemExit(status)


def print_report(report: Mapping[str, Any]) -> None:
    """The two tables."""
    print(f"\n### Clean pairs told from noise: area under the curve ({report['pairs']})\n")
    print(f"| score | {' | '.join((*NOISE, 'all'))} |")
    print("|--" * (len(NOISE) + 2) + "|")
    for name, areas in report["auc"].items():
        print(f"| {name} | {' | '.join(f'{area:.3f}' for area in areas.values())} |")
    print(f"\nOf the best {report['keep']:.0%}, {report['clean_share_of_selected']:.1%} are clean.")
    seen = f"{report['steps']} steps, {report['epochs_of_everything']} epochs of everything"
    print(f"\n### Loss on clean text after {seen}, nats per token\n")
    print("| trained on | dev | test | dev, gained over everything |\n|--|--|--|--|")
    everything = report["losses"]["everything"]["dev"]
    for name, loss in report["losses"].items():
        print(f"| {name} | {loss['dev']:.3f} | {loss['test']:.3f} | {everything - loss['dev']:+.3f} |")


if __name__ == "__main__":
    main()
