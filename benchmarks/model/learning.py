r"""The losses that ours and transformers' T5 reach on the same text, tokens, optimiser and initial weights.

Claim: both learn the same. Peer: Hugging Face transformers' T5. Cited in docs/model/measured.md.

Ours is trained by `mnmt_model.train`; the peer, `T5ForConditionalGeneration` of the same shape, on the same
batches with the same optimiser (our Adafactor) and schedule, with several seeds. Printed are the losses on
the dev and test sets in nats a token. Only the dropout masks differ. With `--runs`, finished runs are not
trained again.

    pip install transformers
    mnmt-data prepare studies/moe-libreoffice.toml
    python -m benchmarks.model.learning --data results/moe-libreoffice/data --runs results/learning \
        --out benchmarks/results/model/learning.json

Without `--data`, both learn a synthetic language.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from benchmarks.measurement import (
    Counts,
    Figures,
    Out,
    is_installed,
    print_table,
    provenance,
    run,
    write_report,
)
from benchmarks.model.trainers import their_model
from benchmarks.studies import prepare, write_text
from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import Batch, Mixture, eval_batches, open_stream
from mnmt_model import ModelConfig, RunConfig, TrainConfig, train
from mnmt_model.optim import clip_gradients, learning_rate, make_optimizer
from mnmt_model.runs import read_evals

Losses = dict[str, float]
"""{test set: nats a token}."""

MODEL = ModelConfig(decoder_layers=2, d_model=128, num_heads=4, d_ff=512)
STUDY = """
name = "learning"
[data]
tasks = ["xx-aa"]
[data.vocab]
kind = "word"
size = 96
[data.synthetic]
languages = ["aa"]
train_sentences = {sentences}
dev_sentences = 200
test_sentences = 200
"""


def main(
    *,
    data: Path | None = None,
    runs: Path | None = None,
    seeds: Counts = (1, 2, 3),
    steps: int = 800,
    batch_tokens: int = 2048,
    sentences: int = 100_000,
    threads: int = 2,
    out: Out = None,
) -> None:
    """Train both with every seed; print their losses.

    Args:
        data: Folder of prepared data, whose first task is learned; a synthetic language by default.
        runs: Folder of the runs; a temporary one by default.
        seeds: Seeds of initial weights, order of the data and dropout.
        steps: Training steps of each run.
        batch_tokens: Source and target tokens of a batch.
        sentences: Training pairs of the synthetic language.
        threads: Threads of torch.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    config = TrainConfig(
        steps=steps,
        batch_tokens=batch_tokens,
        learning_rate=0.03,
        warmup_steps=min(100, steps // 3),
        cooldown_steps=steps // 3,
        clip_norm=1.0,
        dropout=0.1,
        checkpoint_every=500,
        log_every=100,
    )
    with TemporaryDirectory() as temporary:
        runs = runs or Path(temporary) / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        prepared = open_prepared(data or prepare_synthetic(Path(temporary), sentences))
        rows = [compare(run_config(prepared, config, seed), runs, prepared) for seed in seeds]
    print_table(summarise(rows))
    figures = {"model": asdict(MODEL), "train": asdict(config), "rows": rows}
    write_report(out, "losses of both", figures, provenance("mnmt-model", "torch", "transformers"))


def prepare_synthetic(folder: Path, sentences: int) -> Path:
    """Prepare the data of a synthetic language."""
    study = write_text(folder / "learning.toml", STUDY.format(sentences=sentences))
    return prepare(study, folder)


def run_config(data: PreparedData, config: TrainConfig, seed: int) -> RunConfig:
    """Return the configuration of a run on the first task of the data."""
    return RunConfig(
        name=f"ours-seed{seed}",
        study="learning",
        role="fit",
        model=MODEL,
        train=config,
        mixture={task: float(task == data.tasks[0]) for task in data.tasks},
        seed=seed,
        data=data.folder,
    )


def compare(config: RunConfig, runs: Path, data: PreparedData) -> Figures:
    """Return the losses of both at the end of training."""
    row: Figures = {"seed": config.seed, "ours": our_losses(config, runs, data.tasks[0])}
    if is_installed("transformers"):
        row["theirs"] = their_losses(config, runs, data)
    print(json.dumps(row), flush=True)
    return row


def our_losses(config: RunConfig, runs: Path, task: str) -> Losses:
    """Train ours; return its losses at the end."""
    train(config, runs / config.name)
    evals = read_evals(runs / config.name)
    return {e.testset: e.value for e in evals if e.task == task and e.step == config.train.steps}


def their_losses(config: RunConfig, runs: Path, data: PreparedData) -> Losses:
    """Train the peer, unless that is done; return its losses."""
    path = runs / f"transformers-seed{config.seed}.json"
    if not path.exists():
        model = train_theirs(config, data)
        path.write_text(json.dumps({name: shard_loss(model, data, name) for name in ("dev", "test")}))
    losses: Losses = json.loads(path.read_text())
    return losses


def train_theirs(run: RunConfig, data: PreparedData) -> Any:
    """Train the peer as `mnmt_model.train` trains ours; return it."""
    config = run.train
    model = their_model(run.model, data.vocab.size, config.dropout, seed=run.seed).train()
    optimizer = make_optimizer(model, config)
    mixture = Mixture(dict(run.mixture))
    stream = open_stream(data, mixture, config.mixing, batch_tokens=config.batch_tokens, seed=run.seed)
    for step in range(1, config.steps + 1):
        torch.manual_seed(run.seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, step)
        torch.autograd.backward(batch_loss(model, stream.batch(step - 1)))
        clip_gradients(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
    return model


def batch_loss(model: Any, batch: Batch) -> Tensor:
    """Return the nats a target token of a batch."""
    src, tgt = torch.from_numpy(batch.src), torch.from_numpy(batch.tgt)
    labels = tgt.masked_fill(tgt == 0, -100)
    loss: Tensor = model(input_ids=src, attention_mask=(src != 0).long(), labels=labels).loss
    return loss


@torch.inference_mode()
def shard_loss(model: Any, data: PreparedData, testset: str) -> float:
    """Return the nats a target token of a test set."""
    model.eval()
    batches = list(eval_batches(data.shard(testset, data.tasks[0]), batch_tokens=4096))
    total = sum(float(batch_loss(model, batch)) * batch.num_tokens for batch in batches)
    return total / sum(batch.num_tokens for batch in batches)


def summarise(rows: Sequence[Figures]) -> list[Figures]:
    """Return the mean losses over the seeds."""
    table: list[Figures] = []
    for testset in ("dev", "test"):
        peers = [who for who in ("ours", "theirs") if who in rows[0]]
        means = {who: fmean(float(each[who][testset]) for each in rows) for who in peers}
        row: Figures = {who: f"{mean:.4f}" for who, mean in means.items()}
        table.append({"test set": testset} | row)
        if "theirs" in means:
            table[-1]["difference"] = f"{means['ours'] / means['theirs'] - 1:+.2%}"
    return table


if __name__ == "__main__":
    run(main, smoke={"threads": 1, "seeds": (1,), "steps": 3, "batch_tokens": 256, "sentences": 2000})
