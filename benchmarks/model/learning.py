"""Does ours learn what transformers' T5 learns?

The same text, tokens, optimiser and initial weights, several seeds.

Ours is trained by `mnmt_model.train`; the peer, `T5ForConditionalGeneration` of the same shape, on the same
batches with the same optimiser (our Adafactor) and schedule. Printed is the loss on the dev and test sets in
nats a token, of both, per seed. Dropout masks differ, all else does not. Finished runs are not trained again.

    pip install mnmt-model transformers
    mnmt-data prepare studies/libreoffice-en-de-zh.toml
    python -m benchmarks.model.learning --data results/libreoffice-en-de-zh/data --runs results/learning \
        --out benchmarks/results/model/learning.json
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import cyclopts
import torch
from torch import Tensor
from tqdm import trange
from transformers import T5Config, T5ForConditionalGeneration

from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import Batch, Mixture, eval_batches, open_stream
from mnmt_model import ModelConfig, RunConfig, TrainConfig, build_model, train
from mnmt_model.cli.progress import StepProgress
from mnmt_model.export.t5_layout import hugging_face_name, t5_config
from mnmt_model.optim import clip_gradients, learning_rate, make_optimizer
from mnmt_model.runs import read_evals
from mnmt_model.transformer import initialise

Losses = dict[str, float]
"""{test set: nats a token}."""

MODEL = ModelConfig(decoder_layers=2, d_model=128, num_heads=4, d_ff=512)
TASK = "en-de"


def main(
    *,
    data: Path,
    runs: Path,
    out: Path | None = None,
    seeds: tuple[int, ...] = (1, 2, 3),
    steps: int = 800,
    threads: int = 2,
) -> None:
    """Train both with every seed, print and write what they come to.

    Args:
        data: PreparedData data that have the task en-de.
        runs: Folder for the runs.
        out: JSON file to write.
        seeds: Of initial weights, order of the data and dropout.
        steps: Of each run.
        threads: Of each.
    """
    torch.set_num_threads(threads)
    config = TrainConfig(
        steps=steps,
        batch_tokens=2048,
        learning_rate=0.03,
        warmup_steps=100,
        cooldown_steps=steps // 3,
        clip_norm=1.0,
        dropout=0.1,
        checkpoint_every=500,
        log_every=100,
    )
    prepared = open_prepared(data)
    rows = []
    for seed in seeds:
        plan = RunConfig(
            name=f"ours-seed{seed}",
            study="learning",
            role="fit",
            model=MODEL,
            train=config,
            mixture={task: float(task == TASK) for task in prepared.tasks},
            seed=seed,
            data=data,
        )
        rows.append({"seed": seed, "ours": ours(plan, runs), "theirs": theirs(plan, runs, prepared)})
        print(json.dumps(rows[-1]), flush=True)
    report(rows, config, out)


def ours(plan: RunConfig, runs: Path) -> Losses:
    """Our losses at the end."""
    train(plan, runs / plan.name, watchers=[StepProgress(plan.train.steps)])
    evals = read_evals(runs / plan.name)
    return {e.testset: e.value for e in evals if e.task == TASK and e.step == plan.train.steps}


def theirs(plan: RunConfig, runs: Path, data: PreparedData) -> Losses:
    """The peer's."""
    path = runs / f"transformers-seed{plan.seed}.json"
    if not path.exists():
        model = train_theirs(plan, data)
        path.write_text(json.dumps({name: shard_loss(model, data, name) for name in ("dev", "test")}))
    losses: Losses = json.loads(path.read_text())
    return losses


def train_theirs(plan: RunConfig, data: PreparedData) -> T5ForConditionalGeneration:
    """The peer, trained as `mnmt_model.training.trainer` trains ours."""
    model, config = their_model(plan, data.vocab.size), plan.train
    optimizer = make_optimizer(model, config)
    stream = open_stream(
        data, Mixture(dict(plan.mixture)), config.mixing, batch_tokens=config.batch_tokens, seed=plan.seed
    )
    for step in trange(1, config.steps + 1, desc="transformers"):
        torch.manual_seed(plan.seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, step)
        batch_loss(model, stream.batch(step - 1)).backward()
        clip_gradients(model, config.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
    return model


def their_model(plan: RunConfig, vocab_size: int) -> T5ForConditionalGeneration:
    """T5 of the same shape, with our initial weights."""
    initial = build_model(plan.model, vocab_size)
    initialise(initial, plan.seed)
    config = T5Config(**t5_config(plan.model, vocab_size) | {"dropout_rate": plan.train.dropout})
    model = T5ForConditionalGeneration(config)
    weights = {hugging_face_name(name): tensor for name, tensor in initial.state_dict().items()}
    model.load_state_dict(weights, strict=False)
    return model.train()


def batch_loss(model: T5ForConditionalGeneration, batch: Batch) -> Tensor:
    """Nats a target token."""
    src, tgt = torch.from_numpy(batch.src), torch.from_numpy(batch.tgt)
    loss: Tensor = model(
        input_ids=src, attention_mask=(src != 0).long(), labels=tgt.masked_fill(tgt == 0, -100)
    ).loss
    return loss


@torch.inference_mode()
def shard_loss(model: T5ForConditionalGeneration, data: PreparedData, testset: str) -> float:
    """Nats a target token of a test set."""
    model.eval()
    batches = list(eval_batches(data.shard(testset, TASK), batch_tokens=4096))
    total = sum(float(batch_loss(model, batch)) * batch.num_tokens for batch in batches)
    return total / sum(batch.num_tokens for batch in batches)


def report(rows: Sequence[dict[str, Any]], config: TrainConfig, out: Path | None) -> None:
    """Print the means, and write everything."""
    for testset in ("dev", "test"):
        ours_mean, theirs_mean = (fmean(row[who][testset] for row in rows) for who in ("ours", "theirs"))
        print(
            f"{testset:5} ours {ours_mean:.4f}  transformers {theirs_mean:.4f} nats/token  "
            f"{ours_mean / theirs_mean - 1:+.2%}"
        )
    if out is not None:
        versions = {name: version(name) for name in ("mnmt-model", "torch", "transformers")}
        content = {
            "benchmark": "learning",
            "machine": f"{platform.system()} {platform.machine()}",
            "versions": versions,
            "model": asdict(MODEL),
            "train": asdict(config),
            "rows": list(rows),
        }
        out.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    cyclopts.run(main)
